package conntrack

import "testing"

// A sweep looks at no more slots than it may, and goes on where it stopped.
func TestSweepBudget(t *testing.T) {
	table := newTestTable(t, 256)
	for i := range 64 {
		fwd, rev := udp4.connect(i, 1000, 1)
		mustInsert(t, table, fwd, rev, 1)
	}
	timeouts := DefaultTimeouts()
	later := uint32(1) + timeouts.Timeout(17, StateSeen, 0) + 1
	if got := table.Sweep(later-1, 10_000, &timeouts, nil); got != 0 {
		t.Errorf("%d flows expired before their time", got)
	}
	total, calls := 0, 0
	for ; total < 64 && calls < 1000; calls++ {
		n := table.Sweep(later, 16, &timeouts, nil)
		if n > 16 {
			t.Fatalf("a sweep over 16 slots took out %d flows", n)
		}
		total += n
	}
	if total != 64 || calls > (len(table.slots)+15)/16 {
		t.Errorf("%d flows expired in %d sweeps of 16 slots, want 64 in one round of %d slots", total, calls, len(table.slots))
	}
	checked(t, table)
}

// Tombstones stand for their time: a late packet meets the old decision.
func TestTombstone(t *testing.T) {
	table := newTestTable(t, 64)
	fwd, rev := tcp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 100)
	table.Touch(rev, StateSeen|StateSYN, 100)
	table.Touch(fwd, StateSeen|StateACK|StateFIN, 100)
	table.Touch(rev, StateSeen|StateACK|StateFIN, 100)
	timeouts := Timeouts{TCPClosed: 10 << TickShift}
	var f Flow
	if n := table.Sweep(110, 1000, &timeouts, nil); n != 0 || !table.Lookup(&fwd.Tuple, &f) || f.Backend != 1 {
		t.Errorf("a closed connection was forgotten after ten ticks of ten")
	}
	if n := table.Sweep(111, 1000, &timeouts, nil); n != 1 || table.Lookup(&fwd.Tuple, &f) {
		t.Errorf("a closed connection is still there after eleven ticks of ten")
	}
}

// gone decides about forward directions, and takes flows out however young they are.
func TestSweepGone(t *testing.T) {
	table := newTestTable(t, 256)
	for i := range 30 {
		fwd, rev := udp6.connect(i, 1000, i%3+1)
		mustInsert(t, table, fwd, rev, 1)
	}
	timeouts := DefaultTimeouts()
	asked := 0
	n := table.Sweep(1, 1000, &timeouts, func(f *Flow) bool {
		asked++
		if f.Flags&FlagReply != 0 {
			t.Errorf("asked about the reply %v", f.Tuple)
		}
		return f.Backend == 2
	})
	if n != 10 || asked != 30 || table.Len() != 20 {
		t.Errorf("%d flows gone of %d asked about, %d left; want 10, 30, 20", n, asked, table.Len())
	}
	checked(t, table)
}

// One worker sweeps at a time; sweeping inside a sweep is the same case.
func TestSweepIsExclusive(t *testing.T) {
	table := newTestTable(t, 64)
	fwd, rev := udp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 1)
	timeouts := DefaultTimeouts()
	table.Sweep(1, 1000, &timeouts, func(*Flow) bool {
		if n := table.Sweep(1<<20, 1000, &timeouts, nil); n != 0 {
			t.Errorf("a second sweep took out %d flows", n)
		}
		return false
	})
}
