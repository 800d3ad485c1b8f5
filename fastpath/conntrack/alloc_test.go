package conntrack

import "testing"

// Nothing on the packet path allocates.
func TestAllocations(t *testing.T) {
	table := newTestTable(t, 1024)
	table.SetHalfOpenMax(4)
	fwd, rev := tcp6.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 1)
	timeouts := DefaultTimeouts()
	var f, g Flow
	now, n := uint32(10), 0
	many := make([]struct{ fwd, rev *Flow }, 256)
	for i := range many {
		many[i].fwd, many[i].rev = tcp6.connect(i+2, 1000, 1)
	}
	gone := func(f *Flow) bool { return f.Src == many[7].fwd.Src }
	for name, do := range map[string]func(){
		"Lookup": func() { table.Lookup(&fwd.Tuple, &f) },
		"Peer":   func() { table.Lookup(&fwd.Tuple, &f); table.Peer(&f, &g) },
		"Touch":  func() { table.Lookup(&fwd.Tuple, &f); table.Touch(&f, StateACK, 2) },
		"Mode":   func() { table.Lookup(&fwd.Tuple, &f); table.SetMode(&f, ModeLane) },
		"Stamp":  func() { table.Lookup(&fwd.Tuple, &f); table.Restamp(&f, Stamp{1, 2, 3}, 4) },
		"Insert with evictions": func() {
			n++
			now += grace
			p := &many[n%len(many)]
			table.Insert(p.fwd, p.rev, now)
		},
		"Insert and Delete": func() {
			now += grace
			table.Insert(many[0].fwd, many[0].rev, now)
			table.Delete(many[0].fwd)
		},
		"Sweep": func() { table.Sweep(5, 64, &timeouts, gone) },
	} {
		if got := testing.AllocsPerRun(100, do); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
	if table.HalfOpenEvicted() == 0 {
		t.Error("nothing was evicted, which the test is meant to measure")
	}
}
