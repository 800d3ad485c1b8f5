package conntrack

import "sync/atomic"

// Layout is the version of slots, header and tags that this program and its BPF programs
// share. It is part of the header's magic number.
const Layout = 4

// SlotSize is the size of a slot in bytes, BucketSlots the number of slots in a bucket.
// A table of n buckets is 1 + n*BucketSlots slots long: slot 0 is the header, and slot i
// of bucket b is slot 1 + b*BucketSlots + i.
const (
	SlotSize    = 128
	BucketSlots = 8
)

// The near buckets are the first NearBuckets of a table, or all. xdp/bpf/flow.h has the
// same numbers.
const (
	NearBuckets = 1 << 12
	nearMask    = NearBuckets - 1
	nearShift   = 20 // of the hash
)

// slot is one direction of a flow. Addresses are 32-bit words as they lie in packets;
// two u32 (or four u16) of the C layout share a 64-bit word, the first in the low bits.
// IPv4 uses the first cache line only.
type slot struct {
	seq    atomic.Uint32 // odd: being written
	marks  atomic.Uint32 // 0:8 | mode:8 | flags:8 | 0:8
	key    atomic.Uint64 // see key.word; 0 when free
	low    atomic.Uint64 // last words of source and destination
	newLow atomic.Uint64 // last words of the rewritten source and destination
	sums   atomic.Uint64 // rewritten ports:32 | L3 difference:16 | port on which packets come in:16
	owner  atomic.Uint64 // frontend:32 | backend:32
	state  atomic.Uint64 // last seen:32 | bits:16 | incarnation:16
	stamp  atomic.Uint64 // target:16 | generations of frontend, backend, target: 16 each

	high    [3]atomic.Uint64 // first three words of source and destination (IPv6)
	newHigh [3]atomic.Uint64 // and of the rewritten ones
	peer    atomic.Uint32    // slot of the other direction
	packets atomic.Uint32    // counted by the lane
	created atomic.Uint32    // ticks
	_       uint32
}

const (
	modeShift     = 8
	flagsShift    = 16
	knownFlags    = FlagReply | FlagHairpin | FlagSNAT | FlagOutside | FlagStack
	bitsShift     = 32
	incarnShift   = 48
	inShift       = 48
	replyMark     = uint32(FlagReply) << flagsShift
	maxSlots      = 1 << 28
	keysInHash    = 10
	magic         = uint64(Layout)<<56 | 0x776f6c6665636c // "lceflow", version in the last byte
	magicNameMask = 1<<56 - 1
)

// header is slot 0. The magic number is written last.
type header struct {
	magic    atomic.Uint64
	buckets  atomic.Uint32
	slotSize atomic.Uint32
	keys     [keysInHash]atomic.Uint32
	starts   atomic.Uint32 // how often the memory was opened for writing
	_        [68]byte
}

// incarnationOf is what the state word of a slot with this even sequence carries.
func incarnationOf(seq uint32) uint16 { return uint16(seq >> 1) }

// stateWord packs a state word.
func stateWord(seen uint32, bits State, incarnation uint16) uint64 {
	return uint64(seen) | uint64(bits)<<bitsShift | uint64(incarnation)<<incarnShift
}

// sumsWord packs rewritten ports, the L3 difference and the port of entry.
func sumsWord(r *Rewrite, in uint16) uint64 {
	return uint64(portWord(r.SrcPort)) | uint64(portWord(r.DstPort))<<16 | uint64(r.L3)<<32 | uint64(in)<<inShift
}

// withIn is a sums word with another port of entry.
func withIn(sums uint64, in uint16) uint64 {
	return sums&(1<<inShift-1) | uint64(in)<<inShift
}

// l4Of is the L4 difference of a slot with this key and sums word: what the addresses
// change, and what the ports add to it. Slots have no room for it.
func l4Of(key, sums uint64) uint16 {
	l3, before, after := uint32(sums>>32)&0xffff, ^uint32(key), uint32(sums)
	s := l3 + before&0xffff + before>>16 + after&0xffff + after>>16
	s = s&0xffff + s>>16
	return uint16(s + s>>16)
}

func stateBits(w uint64) State         { return State(w >> bitsShift) }
func stateIncarnation(w uint64) uint16 { return uint16(w >> incarnShift) }

// word packs a stamp and the target it speaks of.
func (s Stamp) word(target uint16) uint64 {
	return uint64(target) | uint64(s.Frontend)<<16 | uint64(s.Backend)<<32 | uint64(s.Target)<<48
}

func stampOf(w uint64) Stamp {
	return Stamp{Frontend: uint16(w >> 16), Backend: uint16(w >> 32), Target: uint16(w >> 48)}
}
