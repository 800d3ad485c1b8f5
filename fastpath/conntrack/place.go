package conntrack

import (
	"math/bits"
	"sync/atomic"
)

// Placement. All of it runs under the locks of the buckets concerned.

// crowded is the number of free slots in a bucket from which on the next one is considered.
// Two keeps nearly all flows out of their second bucket up to half load (95 %), and
// refusals at three quarters below one in a thousand; see TestLoad. Near buckets keep as
// many for flows that have them as their first or second.
const crowded = 2

// locate is the slot that holds k, 0 when none does.
func (t *Table) locate(k *key, h homes) uint32 {
	if n := t.inBucket(k, h.near, h.tag); n != 0 {
		return n
	}
	if t.spill(h.near) == 0 {
		return 0
	}
	if n := t.inBucket(k, h.first, h.tag); n != 0 {
		return n
	}
	if t.overflow(h.first) == 0 {
		return 0
	}
	return t.inBucket(k, h.second, h.tag)
}

func (t *Table) inBucket(k *key, bucket uint32, tag uint8) uint32 {
	for marks := equals(t.records[bucket].tags.Load(), tag); marks != 0; marks &= marks - 1 {
		if n := firstSlot(bucket) + lowest(marks); t.slots[n].holds(k) {
			return n
		}
	}
	return 0
}

// place is a free slot for a tuple with these homes, other than taken; 0 when full.
func (t *Table) place(h homes, taken uint32) uint32 {
	near, free := t.vacancy(h.near, taken)
	if free > crowded {
		return near
	}
	a, free := t.vacancy(h.first, taken)
	if free > crowded {
		return a
	}
	b, freeSecond := t.vacancy(h.second, taken)
	if freeSecond > free {
		return b
	}
	if free == 0 {
		return near
	}
	return a
}

// vacancy is the first free slot of a bucket, and how many there are.
func (t *Table) vacancy(bucket, taken uint32) (slot uint32, free int) {
	tags := t.records[bucket].tags.Load()
	if taken != 0 && bucketOf(taken) == bucket {
		tags = withTag(tags, placeOf(taken), 1)
	}
	marks := zeros(tags)
	if marks == 0 {
		return 0, 0
	}
	return firstSlot(bucket) + lowest(marks), bits.OnesCount64(marks)
}

// occupy notes that a flow with homes h comes to live in slot n, before it is written.
func (t *Table) occupy(h homes, n uint32) { t.addAway(h, n, 1) }

// vacate is the reverse, after the slot was cleared.
func (t *Table) vacate(h homes, n uint32) { t.addAway(h, n, ^uint32(0)) }

// addAway counts a flow in the buckets where a reader looks before it comes to slot n.
func (t *Table) addAway(h homes, n, delta uint32) {
	if bucketOf(n) == h.near {
		return
	}
	add(&t.records[h.near].spill, delta)
	if bucketOf(n) != h.first {
		add(&t.records[h.first].overflow, delta)
	}
}

func add(count *atomic.Uint32, delta uint32) { count.Store(count.Load() + delta) }
