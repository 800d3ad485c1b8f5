package conntrack

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// Table is the flow table for writers. Any number of workers of one process may share it.
type Table struct {
	Reader
	stripes  []stripe
	flows    atomic.Int64
	shares   shares
	sweeping sweeper

	half       queue // TCP
	unanswered queue // everything else
}

// New makes a table in plain memory with at least that many slots; a flow takes two.
func New(slots int) (*Table, error) {
	if slots < 1 || slots > maxSlots {
		return nil, fmt.Errorf("flow table of %d slots: choose 1 to %d", slots, maxSlots)
	}
	n := RoundSlots(slots)
	t := newTable(make([]slot, n), make([]record, BucketsIn(n)))
	t.format()
	return t, nil
}

// RoundSlots is the smallest number of slots, header included, that a table of at least
// slots slots can fill: one more than a power of two of buckets. It is what the BPF map
// should be given.
func RoundSlots(slots int) int {
	buckets := max(slots+BucketSlots-1, BucketSlots) / BucketSlots
	if buckets&(buckets-1) != 0 {
		buckets = 1 << bits.Len(uint(buckets))
	}
	return 1 + buckets*BucketSlots
}

// fitting is the largest number of slots, header included, that a table can use of n; 0
// when n is too small for a table.
func fitting(n int) int {
	buckets := min(n-1, maxSlots) / BucketSlots
	if n < 1 || buckets < 1 {
		return 0
	}
	return 1 + BucketSlots<<(bits.Len(uint(buckets))-1)
}

// BucketsIn is the number of buckets, each of which has a tag record, that a table has in
// n slots, header included; 0 when n is too small for a table.
func BucketsIn(n int) int { return max(fitting(n)-1, 0) / BucketSlots }

func newTable(slots []slot, records []record) *Table {
	t := &Table{Reader: newReader(slots, records)}
	t.stripes = make([]stripe, min(t.Buckets(), maxStripes))
	t.shares.flows = make([]atomic.Int32, portIds)
	t.half.waits, t.half.checks = t.halfOpen, checksPerConnection
	t.half.rebuild(t.defaultHalfOpenMax(), 1, nil)
	t.unanswered.waits, t.unanswered.checks = t.silent, checksPerDatagramFlow
	t.unanswered.rebuild(t.defaultUnansweredMax(), 1, nil)
	return t
}

// format writes the header of an empty table, with new secret keys.
func (t *Table) format() {
	for i := range t.records {
		t.records[i].put(0, 0, 0)
	}
	h := t.header()
	h.buckets.Store(uint32(t.Buckets()))
	h.slotSize.Store(SlotSize)
	h.starts.Store(0)
	for i := range t.keys {
		for t.keys[i] == 0 {
			t.keys[i] = rand.Uint32() // ChaCha8 seeded by the system
		}
		h.keys[i].Store(t.keys[i])
	}
	h.magic.Store(magic)
}

// Len is the number of flows in the table, tombstones included. One load.
func (t *Table) Len() int { return int(t.flows.Load()) }
