package counter

import (
	"math/bits"
	"sync/atomic"

	"lace-cni.io/lace/fastpath/reason"
)

// Block holds the counts of one worker. Only that worker may call its methods: counts
// gather in ordinary memory and reach the file with Publish.
type Block struct {
	file  *File
	index int

	packets [reason.Count]uint64
	bytes   [reason.Count]uint64
	events  [Events]uint64
	changed uint64 // one bit per reason counted since the last Publish
}

// A bit per reason must fit in changed.
const _ = uint(64 - reason.Count)

// newBlock goes on from the counts that the file already holds.
func newBlock(f *File, index int) *Block {
	b := &Block{file: f, index: index}
	copyWords(b.packets[:], f.words[f.shape.packet(index):])
	copyWords(b.bytes[:], f.words[f.shape.byteAt(index):])
	copyWords(b.events[:], f.words[f.shape.event(index):])
	return b
}

// Count adds one packet of so many bytes to its reason.
func (b *Block) Count(r reason.Reason, bytes int) {
	if r >= reason.Count {
		r = reason.None
	}
	b.packets[r]++
	b.bytes[r] += uint64(bytes)
	b.changed |= 1 << r
}

// Add adds n to an event.
func (b *Block) Add(e Event, n int) { b.events[e] += uint64(n) }

// Packets is what has been counted for a reason so far, published or not.
func (b *Block) Packets(r reason.Reason) uint64 { return b.packets[r] }

// Event is what has been counted for an event so far, published or not.
func (b *Block) Event(e Event) uint64 { return b.events[e] }

// Publish makes the counts visible in the file and notes that the worker was alive at
// now, in nanoseconds of the monotonic clock (CLOCK_MONOTONIC, the same for every
// process of the node).
func (b *Block) Publish(now int64) {
	words, s := b.file.words, b.file.shape
	packets, octets, events := s.packet(b.index), s.byteAt(b.index), s.event(b.index)
	for rest := b.changed; rest != 0; rest &= rest - 1 {
		r := bits.TrailingZeros64(rest)
		atomic.StoreUint64(&words[packets+r], b.packets[r])
		atomic.StoreUint64(&words[octets+r], b.bytes[r])
	}
	b.changed = 0
	for e, n := range b.events {
		if atomic.LoadUint64(&words[events+e]) != n {
			atomic.StoreUint64(&words[events+e], n)
		}
	}
	atomic.StoreUint64(&words[s.beat(b.index)], uint64(now))
}

func copyWords(dst []uint64, src []uint64) {
	for i := range dst {
		dst[i] = atomic.LoadUint64(&src[i])
	}
}
