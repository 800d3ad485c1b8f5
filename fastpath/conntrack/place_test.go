package conntrack

import "testing"

// TestInsertFindsRoomForBothTuples: wherever two slots are free that the tuples of a flow may
// have, it gets them, also when one of the tuples has no choice.
func TestInsertFindsRoomForBothTuples(t *testing.T) {
	tight := 0
	for range 300 {
		table, all := crowdedTable(t, established|StateFIN, established|StateFIN)
		table.Delete(all[0])
		fwd, rev := tcp4.connect(2, 4000, 2)
		both, either := room(table, fwd, rev)
		want := Full
		if both {
			want = Inserted
		}
		if got := table.Insert(fwd, rev, 100); got != want {
			t.Errorf("Insert gives %v, want %v", got, want)
		}
		if both && either {
			tight++
		}
		checked(t, table)
	}
	if tight == 0 {
		t.Error("in no table did the tuples want the same slot")
	}
}

// room reports whether both tuples find room, and whether one of them could take it from the
// other.
func room(table *Table, fwd, rev *Flow) (both, either bool) {
	free := func(f *Flow) (slots []uint32) {
		var k key
		k.encode(&f.Tuple)
		h := table.homesOf(&k)
		for n := uint32(1); n <= uint32(table.Buckets())*BucketSlots; n++ {
			if b := bucketOf(n); !table.tagged(n) && (b == h.near || b == h.first || b == h.second) {
				slots = append(slots, n)
			}
		}
		return slots
	}
	for _, a := range free(fwd) {
		for _, b := range free(rev) {
			both = both || a != b
			either = either || a == b
		}
	}
	return both, either
}
