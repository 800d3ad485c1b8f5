package table

import (
	"fmt"
	"math/bits"
)

// index finds records by key: open addressing with linear probing over slots that
// hold a record's position plus one, 0 being empty. The number of slots is a power of
// two and at least twice that of the records, so that a probe always meets an empty one.
type index []uint32

// slotsFor is the number of slots for n records.
func slotsFor(n int) uint32 {
	const least = 8
	if n <= least/2 {
		return least
	}
	return 1 << bits.Len(uint(2*n-1))
}

// start is the slot at which the probe for a hash begins.
func (x index) start(hash uint64) uint64 { return hash & uint64(len(x)-1) }

// next is the slot after i.
func (x index) next(i uint64) uint64 { return (i + 1) & uint64(len(x)-1) }

// add enters record pos under hash, unless same finds an earlier record with its key:
// that one's position is returned then, else pos.
func (x index) add(hash uint64, pos int, same func(other int) bool) int {
	i := x.start(hash)
	for ; x[i] != 0; i = x.next(i) {
		if other := int(x[i]) - 1; same(other) {
			return other
		}
	}
	x[i] = uint32(pos) + 1
	return pos
}

// check proves that probes end and stay among n records, and counts the used slots.
func (x index) check(n int) (used int, err error) {
	if len(x) != int(slotsFor(n)) {
		return 0, fmt.Errorf("%d slots for %d records, want %d", len(x), n, slotsFor(n))
	}
	for i, pos := range x {
		if int64(pos) > int64(n) {
			return 0, fmt.Errorf("slot %d names record %d of %d", i, pos, n)
		}
		if pos != 0 {
			used++
		}
	}
	if used > n {
		return 0, fmt.Errorf("%d slots used by %d records", used, n)
	}
	return used, nil
}

// checkAll proves that the index holds each of n records exactly once, where its
// lookup finds it. find is that lookup, by the key of record i.
func (x index) checkAll(n int, find func(i int) (pos int)) error {
	used, err := x.check(n)
	if err != nil {
		return err
	}
	if used != n {
		return fmt.Errorf("%d slots used by %d records", used, n)
	}
	for i := range n {
		if pos := find(i); pos != i {
			return fmt.Errorf("record %d is not found by its key", i)
		}
	}
	return nil
}
