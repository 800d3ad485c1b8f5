package conntrack

import (
	"fmt"
	"testing"
)

// Refusals by load, and how many flows live in their second bucket. One table of this size
// with the bad luck of one refusal is above 30 in a million, so many are filled, each with a
// secret of its own.
func TestLoad(t *testing.T) {
	const tables = 16
	for _, c := range []struct {
		percent    int
		perMillion float64 // permitted refusals
	}{{25, 0}, {50, 20}, {75, 2000}} {
		t.Run(fmt.Sprintf("%d%%", c.percent), func(t *testing.T) {
			var all filling
			for range tables {
				table := newTestTable(t, 1<<17)
				all.add(fillTo(t, table, c.percent))
				checked(t, table)
			}
			got := float64(all.refused) / float64(all.flows) * 1e6
			t.Logf("%d of %d flows refused; %.1f %% of tuples in their second bucket; %.1f %% of misses look there",
				all.refused, all.flows, 100*float64(all.second)/float64(2*all.flows), 100*float64(all.crowded)/float64(all.buckets))
			if got > c.perMillion {
				t.Errorf("%.0f refusals in a million, want at most %.0f", got, c.perMillion)
			}
		})
	}
}

// filling is what came of filling a table.
type filling struct {
	flows, refused   int
	second           int // tuples in their second bucket
	buckets, crowded int // crowded: a look-up that misses goes on to the second bucket
}

func (f *filling) add(o filling) {
	f.flows += o.flows
	f.refused += o.refused
	f.second += o.second
	f.buckets += o.buckets
	f.crowded += o.crowded
}

// fillTo offers a table flows for so many percent of its capacity.
func fillTo(t *testing.T, table *Table, percent int) filling {
	t.Helper()
	f := filling{flows: table.Cap() * percent / 100, buckets: table.Buckets()}
	for i := range f.flows {
		fwd, rev := udp4.connect(i&0xffff, uint16(1000+i>>16), i%250+1)
		switch r := table.Insert(fwd, rev, 1); r {
		case Inserted:
		case Full:
			f.refused++
		default:
			t.Fatalf("flow %d: %v", i, r)
		}
	}
	for b := range f.buckets {
		n := int(table.overflow(uint32(b)))
		f.second += n
		f.crowded += min(n, 1)
	}
	return f
}

// A full table refuses and breaks nothing; when flows end there is room again.
func TestFull(t *testing.T) {
	table := newTestTable(t, 64)
	var all []*Flow
	refused := 0
	for i := 0; refused < 200; i++ {
		fwd, rev := udp4.connect(i, 1000, 1)
		if r := table.Insert(fwd, rev, 1); r == Inserted {
			all = append(all, fwd)
		} else if r == Full {
			refused++
		} else {
			t.Fatalf("flow %d: %v", i, r)
		}
	}
	checked(t, table)
	if len(all) < table.Cap()*3/4 {
		t.Errorf("only %d of %d flows were taken", len(all), table.Cap())
	}
	var f Flow
	for _, fwd := range all {
		if !table.Lookup(&fwd.Tuple, &f) || f != *fwd {
			t.Fatalf("%v is not what it was", fwd.Tuple)
		}
		if !table.Delete(fwd) {
			t.Fatalf("%v is gone", fwd.Tuple)
		}
	}
	checked(t, table)
	fwd, rev := udp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 1)
}

// However many flows of a bucket live elsewhere, their number is known.
func TestOverflowCounts(t *testing.T) {
	table := newTestTable(t, 64)
	h := homes{near: 3, first: 1, second: 2}
	n := firstSlot(2)
	for range 70_000 {
		table.occupy(h, n)
	}
	for range 69_999 {
		table.vacate(h, n)
	}
	if first, near := table.overflow(1), table.spill(3); first != 1 || near != 1 {
		t.Errorf("counters are %d and %d while one flow is left", first, near)
	}
	table.repair(&Report{})
	if first, near := table.overflow(1), table.spill(3); first != 0 || near != 0 {
		t.Errorf("counters are %d and %d after repair of an empty table, want 0", first, near)
	}
}

// TestFewFlowsLieTogether: as many as fit live in the near buckets, whatever the size of the
// table, so that they touch few pages.
func TestFewFlowsLieTogether(t *testing.T) {
	table := newTestTable(t, 1<<20)
	const flows = NearBuckets
	for i := range flows {
		fwd, rev := udp4.connect(i, 1000, i%250+1)
		mustInsert(t, table, fwd, rev, 1)
	}
	far := 0
	for b := range NearBuckets {
		far += int(table.spill(uint32(b)))
	}
	if far > 2*flows/100 {
		t.Errorf("%d of %d tuples live outside the near buckets, want one in a hundred at most", far, 2*flows)
	}
	checked(t, table)
}
