package conntrack

import "testing"

// pairOf looks both directions up.
func pairOf(t *testing.T, table *Table, fwd, rev *Flow) (f, r Flow) {
	t.Helper()
	if !table.Lookup(&fwd.Tuple, &f) || !table.Lookup(&rev.Tuple, &r) {
		t.Fatal("the pair is not there")
	}
	return f, r
}

// Where one direction goes, the other comes in: a target that moves moves both.
func TestRestampMovesWhereTheOtherDirectionComesIn(t *testing.T) {
	for because, of := range map[string]func(fwd, rev *Flow) *Flow{
		"the backend's port moves": func(fwd, _ *Flow) *Flow { return fwd },
		"the client's port moves":  func(_, rev *Flow) *Flow { return rev },
	} {
		table := newTestTable(t, 64)
		fwd, rev := tcp6.connect(1, 1000, 1)
		mustInsert(t, table, fwd, rev, 1)
		moved := of(fwd, rev)
		wantFwd, wantRev := *fwd, *rev
		of(&wantFwd, &wantRev).Target = 4095
		of(&wantRev, &wantFwd).In = 4095
		if !table.Restamp(moved, moved.Stamp, 4095) {
			t.Fatalf("%s: the flow is gone", because)
		}
		if f, r := pairOf(t, table, fwd, rev); f != wantFwd || r != wantRev {
			t.Errorf("%s: the pair is\n%+v\n%+v, want\n%+v\n%+v", because, f, r, wantFwd, wantRev)
		}
		checked(t, table)
	}
}

func TestInstallPair(t *testing.T) {
	for because, of := range map[string]func(fwd, rev *Flow) *Flow{
		"by the client's direction":  func(fwd, _ *Flow) *Flow { return fwd },
		"by the backend's direction": func(_, rev *Flow) *Flow { return rev },
	} {
		table := newTestTable(t, 64)
		fwd, rev := udp4.connect(1, 1000, 1)
		mustInsert(t, table, fwd, rev, 1)
		wantFwd, wantRev := *fwd, *rev
		wantFwd.Mode, wantRev.Mode = ModeLane, ModeLane
		if f := of(fwd, rev); !table.InstallPair(f) || f.Mode != ModeLane {
			t.Fatalf("%s: not installed: %+v", because, f)
		}
		if f, r := pairOf(t, table, fwd, rev); f != wantFwd || r != wantRev {
			t.Errorf("%s: the pair is\n%+v\n%+v, want\n%+v\n%+v", because, f, r, wantFwd, wantRev)
		}
		checked(t, table)
	}
}

// A copy of a flow that is gone installs nothing, not even the flow that took its slots.
func TestInstallStalePair(t *testing.T) {
	table := newTestTable(t, 8)
	fwd, rev := udp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 1)
	stale := *fwd
	if !table.Delete(fwd) || table.InstallPair(&stale) {
		t.Fatal("a deleted flow was installed")
	}
	again, reply := udp4.connect(1, 1000, 2)
	mustInsert(t, table, again, reply, 1)
	if again.slot != stale.slot {
		t.Fatalf("the flow lives in slot %d, not in the old one's %d: the test would prove nothing", again.slot, stale.slot)
	}
	if table.InstallPair(&stale) || table.InstallPair(&Flow{}) {
		t.Error("a copy of a flow that is gone was installed")
	}
	if f, r := pairOf(t, table, again, reply); f.Mode != ModeGo || r.Mode != ModeGo {
		t.Errorf("modes are %d and %d", f.Mode, r.Mode)
	}
	replaced := *again
	other, otherReply := udp4.connect(1, 1000, 3)
	if r := table.Replace(again, other, otherReply, 2); r != Inserted {
		t.Fatalf("Replace is %v", r)
	}
	if table.InstallPair(&replaced) {
		t.Error("a flow that got another backend was installed by its old copy")
	}
	checked(t, table)
}

func TestCounts(t *testing.T) {
	table := newTestTable(t, 64)
	want := Counts{}
	for i, mode := range []Mode{ModeGo, ModeLane, ModePass, ModeLane, ModeOpening} {
		fwd, rev := []service{udp4, udp6}[i%2].connect(i, 1000, 1)
		fwd.Mode, rev.Mode = mode, ModeGo
		mustInsert(t, table, fwd, rev, 1)
		want.Slots += 2
	}
	want.Lane, want.Pass = 2, 1
	if got := table.Counts(); got != want {
		t.Errorf("Counts is %+v, want %+v", got, want)
	}
}
