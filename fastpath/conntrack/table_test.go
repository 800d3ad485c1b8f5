package conntrack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/fastpath/packet"
)

var decision = cmpopts.IgnoreUnexported(Flow{})

func TestInsertLookup(t *testing.T) {
	for _, s := range []service{tcp4, tcp6, udp4, udp6} {
		table := newTestTable(t, 64)
		fwd, rev := s.connect(1, 1000, 1)
		fwd.Flags, rev.Mode = FlagSNAT, ModePass
		wantFwd, wantRev := *fwd, *rev
		mustInsert(t, table, fwd, rev, 42)
		wantFwd.LastSeen, wantRev.LastSeen = 42, 42
		wantRev.Flags |= FlagReply
		for _, want := range []*Flow{&wantFwd, &wantRev} {
			var got, other Flow
			if !table.Lookup(&want.Tuple, &got) {
				t.Fatalf("%v: not found", want.Tuple)
			}
			if diff := cmp.Diff(*want, got, decision); diff != "" {
				t.Errorf("flow differs (-want +got):\n%s", diff)
			}
			if !table.Peer(&got, &other) || other.Tuple == got.Tuple {
				t.Errorf("%v: peer is %v", got.Tuple, other.Tuple)
			}
		}
		if got := table.Len(); got != 1 {
			t.Errorf("Len is %d, want 1", got)
		}
		checked(t, table)
	}
}

// Every part of a tuple tells flows apart.
func TestLookupMisses(t *testing.T) {
	for _, s := range []service{tcp4, tcp6} {
		table := newTestTable(t, 64)
		fwd, rev := s.connect(1, 1000, 1)
		mustInsert(t, table, fwd, rev, 1)
		for because, change := range map[string]func(*Tuple){
			"another source":                     func(u *Tuple) { u.Src[15]++ },
			"another destination":                func(u *Tuple) { u.Dst[15]++ },
			"another source port":                func(u *Tuple) { u.SrcPort++ },
			"another destination port":           func(u *Tuple) { u.DstPort++ },
			"another network":                    func(u *Tuple) { u.Network++ },
			"another protocol":                   func(u *Tuple) { u.Protocol++ },
			"ports the other way round":          func(u *Tuple) { u.SrcPort, u.DstPort = u.DstPort, u.SrcPort },
			"a network that no key can hold":     func(u *Tuple) { u.Network |= 1 << 22 },
			"addresses of two families":          func(u *Tuple) { u.Src = addr("fd00::1"); u.Dst = addr("10.96.0.1") },
			"IPv6 source, first word differs":    func(u *Tuple) { u.Src[0] ^= 1 },
			"IPv6 source, second word differs":   func(u *Tuple) { u.Src[4] ^= 1 },
			"IPv6 source, third word differs":    func(u *Tuple) { u.Src[8] ^= 1 },
			"IPv6 destination, first word":       func(u *Tuple) { u.Dst[0] ^= 1 },
			"IPv6 destination, second word":      func(u *Tuple) { u.Dst[4] ^= 1 },
			"IPv6 destination, third word":       func(u *Tuple) { u.Dst[8] ^= 1 },
			"the zero tuple, which is of no use": func(u *Tuple) { *u = Tuple{} },
		} {
			tuple := fwd.Tuple
			change(&tuple)
			var f Flow
			if table.Lookup(&tuple, &f) {
				t.Errorf("%s: %v was found", because, tuple)
			}
		}
	}
}

func TestInsertResults(t *testing.T) {
	insert := func(client int, port uint16, backend int, change func(fwd, rev *Flow)) func(*Table) Result {
		return func(table *Table) Result {
			fwd, rev := tcp4.connect(client, port, backend)
			if change != nil {
				change(fwd, rev)
			}
			return table.Insert(fwd, rev, 1)
		}
	}
	twoVIPs := func(fwd, rev *Flow) { fwd.Dst, rev.Rewrite.Src = addr("10.96.0.2"), addr("10.96.0.2") }
	for _, c := range []struct {
		because string
		steps   []func(*Table) Result
		want    Result // of the last step; the others insert
	}{
		{"the first packet of a tuple makes a flow", []func(*Table) Result{insert(1, 1000, 1, nil)}, Inserted},
		{"another client port is another flow", []func(*Table) Result{insert(1, 1000, 1, nil), insert(1, 1001, 1, nil)}, Inserted},
		{"the same tuple keeps its backend", []func(*Table) Result{insert(1, 1000, 1, nil), insert(1, 1000, 2, nil)}, Exists},
		{"one client port through two VIPs to one backend has one reply tuple", []func(*Table) Result{insert(1, 1000, 1, nil), insert(1, 1000, 1, twoVIPs)}, Clash},
		{"one client port through two VIPs to two backends is fine", []func(*Table) Result{insert(1, 1000, 1, nil), insert(1, 1000, 2, twoVIPs)}, Inserted},
		{"a flow that would be its own reply", []func(*Table) Result{insert(1, 1000, 1, func(fwd, rev *Flow) { rev.Tuple = fwd.Tuple })}, Clash},
		{"two families", []func(*Table) Result{insert(1, 1000, 1, func(fwd, rev *Flow) { fwd.Dst = addr("fd00::1") })}, Invalid},
		{"a rewrite into the other family", []func(*Table) Result{insert(1, 1000, 1, func(fwd, rev *Flow) { fwd.Rewrite.Dst = addr("fd00::1") })}, Invalid},
		{"two protocols", []func(*Table) Result{insert(1, 1000, 1, func(fwd, rev *Flow) { rev.Protocol = packet.ProtocolUDP })}, Invalid},
		{"a network id of 23 bits", []func(*Table) Result{insert(1, 1000, 1, func(fwd, rev *Flow) { rev.Network = packet.MaxNetworkID + 1 })}, Invalid},
		{"a mode that does not exist", []func(*Table) Result{insert(1, 1000, 1, func(fwd, rev *Flow) { rev.Mode = lastMode + 1 })}, Invalid},
	} {
		table := newTestTable(t, 64)
		for i, step := range c.steps {
			want := Inserted
			if i == len(c.steps)-1 {
				want = c.want
			}
			if got := step(table); got != want {
				t.Errorf("%s: step %d is %v, want %v", c.because, i, got, want)
			}
		}
		checked(t, table)
	}
}

func TestExistsGivesTheFlow(t *testing.T) {
	table := newTestTable(t, 64)
	first, rev := udp6.connect(1, 1000, 1)
	mustInsert(t, table, first, rev, 1)
	second, rev2 := udp6.connect(1, 1000, 2)
	if r := table.Insert(second, rev2, 9); r != Exists {
		t.Fatalf("Insert is %v, want exists", r)
	}
	if diff := cmp.Diff(*first, *second, cmp.AllowUnexported(Flow{})); diff != "" {
		t.Errorf("flow found differs from the first (-first +found):\n%s", diff)
	}
	if !table.Touch(second, StateACK, 10) {
		t.Error("the flow found cannot be touched")
	}
}

// A client whose tuple is the reply tuple of another flow gets to know.
func TestExistsMayBeAReply(t *testing.T) {
	table := newTestTable(t, 64)
	fwd, rev := tcp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 1)
	other, otherRev := tcp4.connect(2, 1000, 2)
	other.Tuple = rev.Tuple
	if r := table.Insert(other, otherRev, 1); r != Exists || other.Flags&FlagReply == 0 {
		t.Errorf("Insert is %v with flags %#x, want exists and the reply flag", r, other.Flags)
	}
}

func TestReplace(t *testing.T) {
	for _, s := range []service{tcp4, tcp6} {
		table := newTestTable(t, 64)
		old, oldRev := s.connect(1, 1000, 1)
		mustInsert(t, table, old, oldRev, 1)
		if !table.Touch(old, StateFIN, 2) {
			t.Fatal("flow is gone")
		}
		stale := *old
		fwd, rev := s.connect(1, 1000, 2)
		if r := table.Replace(old, fwd, rev, 3); r != Inserted {
			t.Fatalf("Replace is %v, want inserted", r)
		}
		checked(t, table)
		var f Flow
		if !table.Lookup(&fwd.Tuple, &f) || f != *fwd || f.Backend != 2 || f.State&StateFIN != 0 || f.LastSeen != 3 {
			t.Errorf("forward direction is %+v", f)
		}
		if table.Lookup(&oldRev.Tuple, &f) {
			t.Error("the reply tuple of the old backend is still there")
		}
		if !table.Lookup(&rev.Tuple, &f) || f != *rev {
			t.Errorf("reply direction is %+v", f)
		}
		if table.Touch(&stale, StateSeen, 9) || table.SetMode(&stale, ModeLane) || table.Restamp(&stale, Stamp{}, 1) || table.Delete(&stale) || table.Peer(&stale, &f) {
			t.Error("a copy from before still reaches the flow")
		}
		if r := table.Replace(&stale, fwd, rev, 4); r != Gone {
			t.Errorf("Replace of the old copy is %v, want gone", r)
		}
		if table.Len() != 1 {
			t.Errorf("Len is %d, want 1", table.Len())
		}
	}
}

func TestReplaceResults(t *testing.T) {
	table := newTestTable(t, 64)
	old, oldRev := tcp4.connect(1, 1000, 1)
	mustInsert(t, table, old, oldRev, 1)
	other, otherRev := tcp4.connect(1, 1001, 2)
	mustInsert(t, table, other, otherRev, 1)

	fwd, rev := tcp4.connect(1, 1000, 2)
	rev.Tuple = otherRev.Tuple
	if r := table.Replace(old, fwd, rev, 2); r != Clash {
		t.Errorf("with another flow's reply tuple: %v, want clash", r)
	}
	fwd, rev = tcp4.connect(1, 1002, 2)
	if r := table.Replace(old, fwd, rev, 2); r != Invalid {
		t.Errorf("with another forward tuple: %v, want invalid", r)
	}
	if r := table.Replace(oldRev, oldRev, old, 2); r != Invalid {
		t.Errorf("of the reply direction: %v, want invalid", r)
	}
	checked(t, table)
	fwd, rev = tcp4.connect(1, 1000, 1)
	if r := table.Replace(old, fwd, rev, 3); r != Inserted {
		t.Errorf("with the same reply tuple: %v, want inserted", r)
	}
	checked(t, table)
	if !table.Delete(fwd) {
		t.Fatal("flow is gone")
	}
	if r := table.Replace(fwd, fwd, rev, 4); r != Gone {
		t.Errorf("of a deleted flow: %v, want gone", r)
	}
	checked(t, table)
}

func TestDelete(t *testing.T) {
	for _, direction := range []string{"forward", "reply"} {
		table := newTestTable(t, 64)
		fwd, rev := udp4.connect(1, 1000, 1)
		mustInsert(t, table, fwd, rev, 1)
		f := map[string]*Flow{"forward": fwd, "reply": rev}[direction]
		if !table.Delete(f) {
			t.Fatalf("Delete by the %s direction reports that the flow is gone", direction)
		}
		if table.Delete(f) {
			t.Error("the second Delete reports success")
		}
		var got Flow
		if table.Lookup(&fwd.Tuple, &got) || table.Lookup(&rev.Tuple, &got) || table.Len() != 0 {
			t.Errorf("a direction is left; Len is %d", table.Len())
		}
		checked(t, table)
	}
}

// A note for a flow that is gone never reaches the flow that took its slot.
func TestStaleCopies(t *testing.T) {
	table := newTestTable(t, 8)
	old, oldRev := udp4.connect(1, 1000, 1)
	mustInsert(t, table, old, oldRev, 1)
	stale, staleRev := *old, *oldRev
	table.Delete(old)
	fwd, rev := udp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 5)
	if fwd.slot != stale.slot && fwd.slot != staleRev.slot {
		t.Fatalf("slot %d was not used again", stale.slot)
	}
	for _, f := range []*Flow{&stale, &staleRev, {}, {slot: 1 << 30}} {
		var out Flow
		if table.Touch(f, StateRST, 9) || table.SetMode(f, ModeLane) || table.Restamp(f, Stamp{9, 9, 9}, 9) || table.Delete(f) || table.Peer(f, &out) {
			t.Errorf("slot %d incarnation %d was reached", f.slot, f.incarnation)
		}
	}
	var got Flow
	if !table.Lookup(&fwd.Tuple, &got) || got != *fwd {
		t.Errorf("flow is %+v, want %+v", got, *fwd)
	}
}

func TestTouch(t *testing.T) {
	table := newTestTable(t, 8)
	fwd, rev := tcp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 100)
	for _, c := range []struct {
		because   string
		bits      State
		now       uint32
		wantState State
		wantSeen  uint32
	}{
		{"bits add up", StateSeen | StateACK, 101, StateSeen | StateSYN | StateACK, 101},
		{"a worker whose clock is behind does not make the flow older", StateSeen, 99, StateSeen | StateSYN | StateACK, 101},
		{"an RST is noted", StateSeen | StateRST, 102, StateSeen | StateSYN | StateACK | StateRST, 102},
		{"the clock moves alone", StateSeen, 103, StateSeen | StateSYN | StateACK | StateRST, 103},
		{"an ACK takes the RST back", StateSeen | StateACK, 103, StateSeen | StateSYN | StateACK, 103},
	} {
		if !table.Touch(fwd, c.bits, c.now) {
			t.Fatalf("%s: flow is gone", c.because)
		}
		var got Flow
		table.Lookup(&fwd.Tuple, &got)
		if got.State != c.wantState || got.LastSeen != c.wantSeen || got != *fwd {
			t.Errorf("%s: state %#x seen %d, want %#x and %d", c.because, got.State, got.LastSeen, c.wantState, c.wantSeen)
		}
	}
	var other Flow
	if table.Lookup(&rev.Tuple, &other); other.State != 0 || other.LastSeen != 100 {
		t.Errorf("the other direction changed: %+v", other)
	}
}

func TestRestampAndMode(t *testing.T) {
	table := newTestTable(t, 8)
	fwd, rev := tcp6.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 1)
	copyBefore := *fwd
	if !table.Restamp(fwd, Stamp{0xffff, 0, 0x8000}, 77) || !table.SetMode(fwd, ModeLane) {
		t.Fatal("flow is gone")
	}
	if table.SetMode(fwd, lastMode+1) {
		t.Error("an unknown mode was taken")
	}
	var got Flow
	if !table.Lookup(&fwd.Tuple, &got) || got != *fwd {
		t.Errorf("flow is %+v, the copy says %+v", got, *fwd)
	}
	want := copyBefore
	want.Stamp, want.Target, want.Mode = Stamp{0xffff, 0, 0x8000}, 77, ModeLane
	if got != want {
		t.Errorf("flow is %+v, want %+v", got, want)
	}
	if !table.Touch(&copyBefore, StateSeen, 2) {
		t.Error("a copy from before does not reach the flow any more")
	}
	checked(t, table)
}

func TestRange(t *testing.T) {
	table := newTestTable(t, 256)
	want := map[Tuple]uint32{}
	for i := range 20 {
		for _, s := range []service{udp4, udp6} {
			fwd, rev := s.connect(i, 1000, i%3+1)
			mustInsert(t, table, fwd, rev, 1)
			want[fwd.Tuple] = fwd.Backend
		}
	}
	got := map[Tuple]uint32{}
	for f := range table.Range {
		got[f.Tuple] = f.Backend
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flows visited differ (-want +got):\n%s", diff)
	}
	visits := 0
	table.Range(func(*Flow) bool { visits++; return visits < 3 })
	if visits != 3 {
		t.Errorf("%d visits after the third said stop", visits)
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct{ asked, slots, flows int }{
		{1, 9, 4}, {8, 9, 4}, {9, 17, 8}, {17, 33, 16}, {1 << 20, 1<<20 + 1, 1 << 19}, {1<<20 + 1, 1<<21 + 1, 1 << 20},
	} {
		table := newTestTable(t, c.asked)
		if got := RoundSlots(c.asked); got != c.slots || len(table.slots) != c.slots || table.Cap() != c.flows || table.Buckets() != c.flows/4 {
			t.Errorf("%d slots asked: RoundSlots %d, %d slots, Cap %d, %d buckets; want %d slots, Cap %d", c.asked, got, len(table.slots), table.Cap(), table.Buckets(), c.slots, c.flows)
		}
		if got := fitting(c.slots); got != c.slots {
			t.Errorf("memory of %d slots: %d are used", c.slots, got)
		}
	}
	for _, slots := range []int{0, -1, maxSlots + 1} {
		if table, err := New(slots); err == nil {
			t.Errorf("New(%d) made a table of %d buckets", slots, table.Buckets())
		}
	}
}
