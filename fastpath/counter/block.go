package counter

import "lace-cni.io/lace/fastpath/reason"

// Block holds the counts of one worker. Only that worker may call its methods: counts
// gather in ordinary memory and reach the file with Publish.
type Block struct {
	file  *File
	index int

	packets [reason.Count]uint64
	bytes   [reason.Count]uint64
	events  [Events]uint64
	written int64 // when the counts were written last, 0 for never yet
}

// writeEvery is how long counts gather before they are written, in nanoseconds.
const writeEvery = 20_000_000

// newBlock goes on from the counts that the file already holds.
func newBlock(f *File, index int) *Block {
	b := &Block{file: f, index: index}
	copy(b.packets[:], f.words[f.shape.packet(index):])
	copy(b.bytes[:], f.words[f.shape.byteAt(index):])
	copy(b.events[:], f.words[f.shape.event(index):])
	return b
}

// Count adds one packet of so many bytes to its reason.
func (b *Block) Count(r reason.Reason, bytes int) {
	if r >= reason.Count {
		r = reason.None
	}
	b.packets[r]++
	b.bytes[r] += uint64(bytes)
}

// CountAll adds packets of so many bytes together to their reason.
func (b *Block) CountAll(r reason.Reason, packets, bytes int) {
	b.packets[r] += uint64(packets)
	b.bytes[r] += uint64(bytes)
}

// Add adds n to an event.
func (b *Block) Add(e Event, n int) { b.events[e] += uint64(n) }

// Packets is what has been counted for a reason so far, published or not.
func (b *Block) Packets(r reason.Reason) uint64 { return b.packets[r] }

// Event is what has been counted for an event so far, published or not.
func (b *Block) Event(e Event) uint64 { return b.events[e] }

// Publish notes that the worker was alive at now, in nanoseconds of the monotonic clock
// (CLOCK_MONOTONIC, the same for every process of the node), and shows the counts in the
// file if the last time is 20 ms ago. It costs a comparison, or one system call of some
// 0.4 us on a file system in memory (BenchmarkWrite). A worker that calls it at every
// batch and before it rests shows all counts within 20 ms and the length of a rest.
func (b *Block) Publish(now int64) {
	if b.written != 0 && now-b.written < writeEvery && now >= b.written {
		return
	}
	b.Write(now)
}

// Write is Publish without waiting for the time to come, for a worker that ends.
func (b *Block) Write(now int64) {
	s := b.file.shape
	at := s.block(b.index)
	words := b.file.words[at : at+s.stride]
	copy(words, b.packets[:])
	copy(words[s.reasons:], b.bytes[:])
	copy(words[2*s.reasons:], b.events[:])
	words[s.beat(0)-s.block(0)] = uint64(now)
	b.file.write(words, at)
	b.written = now
}
