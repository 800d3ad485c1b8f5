package conntrack

import (
	"slices"
	"testing"
)

// crowdedTable is a table of two buckets, full of TCP connections in the given state, last
// seen at tick 100.
func crowdedTable(t *testing.T, fwdBits, revBits State) (table *Table, all []*Flow) {
	t.Helper()
	return crowd(t, 1+BucketSlots, fwdBits, revBits)
}

func crowd(t *testing.T, slots int, fwdBits, revBits State) (table *Table, all []*Flow) {
	t.Helper()
	table = newTestTable(t, slots)
	table.SetHalfOpenMax(table.Cap())
	for port := uint16(1); table.Len() < table.Cap(); port++ {
		if port == 0 {
			t.Fatalf("%d of %d flows fit in", table.Len(), table.Cap())
		}
		fwd, rev := tcp4.connect(1, port, 1)
		fwd.State, rev.State = fwdBits, revBits
		if table.Insert(fwd, rev, 100) == Inserted {
			all = append(all, fwd)
		}
	}
	return table, all
}

const established = StateSeen | StateSYN | StateACK

func TestReclaim(t *testing.T) {
	cases := []struct {
		sentence string
		fwd, rev State
		now      uint32
		want     bool
	}{
		{"connections that both ends closed give way", established | StateFIN, established | StateFIN, 100 + silence, true},
		{"connections that were reset give way", established, established | StateRST, 100 + silence, true},
		{"closed connections are left alone for a second", established | StateFIN, established | StateFIN, 100 + silence - 1, false},
		{"established connections never give way", established, established, 1 << 20, false},
		{"connections that one end closed never give way", established | StateFIN, established, 1 << 20, false},
		{"half-open connections do not give way here", StateSeen | StateSYN, 0, 1 << 20, false},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			table, all := crowdedTable(t, c.fwd, c.rev)
			fwd, rev := tcp4.connect(2, 4000, 2)
			if r := table.Insert(fwd, rev, c.now); r != Full {
				t.Fatalf("Insert into a full table gives %v", r)
			}
			if got := table.Reclaim(&fwd.Tuple, &rev.Tuple, c.now); got != c.want {
				t.Errorf("Reclaim gives %v, want %v", got, c.want)
			}
			checked(t, table)
			if !c.want {
				if table.Len() != len(all) {
					t.Errorf("%d flows left of %d", table.Len(), len(all))
				}
				return
			}
			if r := table.Insert(fwd, rev, c.now); r != Inserted {
				t.Errorf("Insert after Reclaim gives %v", r)
			}
			checked(t, table)
		})
	}
}

// TestReclaimForBothDirectionsInOneBucket: the slot that the first direction is to have is not
// the second one's, and hides none behind it.
func TestReclaimForBothDirectionsInOneBucket(t *testing.T) {
	const now = 100 + silence
	table, all := crowd(t, BucketSlots, established|StateFIN, established|StateFIN)
	for i := range 3 * len(all) {
		fwd, rev := tcp4.connect(2, uint16(4000+i), 2)
		if !table.Reclaim(&fwd.Tuple, &rev.Tuple, now) || table.Len() != len(all)-1 {
			t.Fatalf("%d connections of %d are left, want one less", table.Len(), len(all))
		}
		if !table.Reclaim(&fwd.Tuple, &rev.Tuple, now) || table.Len() != len(all)-1 {
			t.Errorf("where there is room %d connections of %d are left, want all but one", table.Len(), len(all))
		}
		fwd.State, rev.State = established|StateFIN, established|StateFIN
		if r := table.Insert(fwd, rev, 100); r != Inserted {
			t.Fatalf("Insert after Reclaim gives %v", r)
		}
		checked(t, table)
	}
}

func TestReclaimTakesTheOneThatHasBeenSilentForLongest(t *testing.T) {
	table, all := crowdedTable(t, established|StateFIN, established|StateFIN)
	oldest := all[0]
	for _, f := range all[1:] {
		table.Touch(f, 0, 200)
	}
	// A new flow that has to live where the oldest one does.
	var fwd, rev *Flow
	for port := uint16(4000); ; port++ {
		var k key
		fwd, rev = tcp4.connect(2, port, 2)
		k.encode(&fwd.Tuple)
		if h := table.homesOf(&k); slices.Contains([]uint32{h.near, h.first, h.second}, bucketOf(oldest.slot)) {
			break
		}
	}
	table.Reclaim(&fwd.Tuple, &rev.Tuple, 1000)
	var f Flow
	if table.Lookup(&oldest.Tuple, &f) {
		t.Error("the oldest tombstone still stands")
	}
	if table.Len() < len(all)-2 {
		t.Errorf("%d of %d tombstones left, want at most two taken", table.Len(), len(all))
	}
	checked(t, table)
}

func TestReclaimOfUDPTakesNothing(t *testing.T) {
	table := newTestTable(t, 1+BucketSlots)
	for port := uint16(1); table.Len() < table.Cap() && port != 0; port++ {
		fwd, rev := udp4.connect(1, port, 1)
		table.Insert(fwd, rev, 1)
	}
	before := table.Len()
	fwd, rev := tcp4.connect(2, 4000, 2)
	if table.Reclaim(&fwd.Tuple, &rev.Tuple, 1<<20) || table.Len() != before {
		t.Errorf("%d flows of %d left", table.Len(), before)
	}
}
