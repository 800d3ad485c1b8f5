package conntrack

import (
	"math/bits"
	"sync/atomic"
)

// TagSize is the size of a bucket's tag record in bytes. The records lie in an array of
// their own, that of bucket b at b*TagSize.
const TagSize = 16

// record says what a bucket holds, so that a look-up reads no slot of another tuple to
// speak of, and one that finds nothing mostly reads no slot at all. It is changed under
// the bucket's lock; a slot has a tag exactly while it is in use. Readers may see a tag
// that its slot does not deserve any more: the slot has the last word.
type record struct {
	tags     atomic.Uint64 // a byte for each slot, the first one's lowest; 0: free
	overflow atomic.Uint32 // flows that have this as their first bucket and live in their second
	spill    atomic.Uint32 // flows that have this as their near bucket and live in their first or second
}

const (
	tagShift   = 56 // of the hash; what is below chooses buckets
	everyByte  = 0x0101010101010101
	lowOfBytes = 0x7f * everyByte
)

// tagOf is a number from 1 to 255. The same function is in xdp/bpf/tag.h.
func tagOf(hash uint64) uint8 { return max(uint8(hash>>tagShift), 1) }

// zeros has the highest bit of each byte that is zero in x, and no other.
func zeros(x uint64) uint64 { return ^((x&lowOfBytes + lowOfBytes) | x | lowOfBytes) }

// equals has the highest bit of each byte of tags that is tag.
func equals(tags uint64, tag uint8) uint64 { return zeros(tags ^ uint64(tag)*everyByte) }

// lowest is the slot of a bucket to which the lowest bit of marks belongs.
func lowest(marks uint64) uint32 { return uint32(bits.TrailingZeros64(marks)) / 8 }

// withTag is tags with another tag for slot i.
func withTag(tags uint64, i uint32, tag uint8) uint64 {
	return tags&^(0xff<<(8*i)) | uint64(tag)<<(8*i)
}

// tagged reports whether slot n is in use.
func (r *Reader) tagged(n uint32) bool {
	return uint8(r.records[bucketOf(n)].tags.Load()>>(8*placeOf(n))) != 0
}

// setTag makes readers find slot n, or with 0 not find it, under the lock of its bucket.
func (t *Table) setTag(n uint32, tag uint8) {
	tags := &t.records[bucketOf(n)].tags
	tags.Store(withTag(tags.Load(), placeOf(n), tag))
}

// put writes what differs.
func (r *record) put(tags uint64, overflow, spill uint32) {
	if r.spill.Load() != spill {
		r.spill.Store(spill)
	}
	if r.tags.Load() != tags {
		r.tags.Store(tags)
	}
	if r.overflow.Load() != overflow {
		r.overflow.Store(overflow)
	}
}
