package conntrack

import (
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

// halfOpenRun is a table with room for few half-open connections, and its clients.
type halfOpenRun struct {
	*testing.T
	table *Table
	now   uint32
	next  int
}

func newHalfOpenRun(t *testing.T, limit int) *halfOpenRun {
	r := &halfOpenRun{T: t, table: newTestTable(t, 4096), now: 100}
	r.table.SetHalfOpenMax(limit)
	return r
}

// dial sends the SYN of a new client.
func (r *halfOpenRun) dial() (fwd, rev *Flow, result Result) {
	r.next++
	fwd, rev = tcp4.connect(r.next, 1000, 1)
	return fwd, rev, r.table.Insert(fwd, rev, r.now)
}

func (r *halfOpenRun) mustDial() (fwd, rev *Flow) {
	r.Helper()
	fwd, rev, result := r.dial()
	if result != Inserted {
		r.Fatalf("client %d: %v, want inserted", r.next, result)
	}
	return fwd, rev
}

func (r *halfOpenRun) establish(fwd, rev *Flow) {
	r.Helper()
	if !r.table.Touch(rev, StateOf(packet.FlagSYN|packet.FlagACK), r.now) || !r.table.Touch(fwd, StateOf(packet.FlagACK), r.now) {
		r.Fatal("flow is gone")
	}
}

func (r *halfOpenRun) alive(f *Flow) bool {
	var got Flow
	return r.table.Lookup(&f.Tuple, &got)
}

func (r *halfOpenRun) expectAlive(because string, f *Flow, want bool) {
	r.Helper()
	if got := r.alive(f); got != want {
		r.Errorf("%s: flow of %v is there: %v, want %v", because, f.Src, got, want)
	}
}

func TestHalfOpenOldestGoesFirst(t *testing.T) {
	r := newHalfOpenRun(t, 4)
	var all []*Flow
	for range 4 {
		f, _ := r.mustDial()
		all = append(all, f)
		r.now++
	}
	r.now += grace
	fifth, _ := r.mustDial()
	sixth, _ := r.mustDial()
	r.expectAlive("the oldest gives way to the fifth", all[0], false)
	r.expectAlive("the second oldest gives way to the sixth", all[1], false)
	for _, f := range []*Flow{all[2], all[3], fifth, sixth} {
		r.expectAlive("the others stay", f, true)
	}
	if got := r.table.HalfOpenEvicted(); got != 2 {
		t.Errorf("%d evictions are counted, want 2", got)
	}
	if got := r.table.HalfOpen(); got != 4 {
		t.Errorf("%d are half-open, want 4", got)
	}
	checked(t, r.table)
}

func TestHalfOpenNeverEvictsEstablished(t *testing.T) {
	r := newHalfOpenRun(t, 4)
	var established []*Flow
	for range 100 {
		f, rev := r.mustDial()
		r.establish(f, rev)
		established = append(established, f)
	}
	for range 100 { // a flood
		r.now += grace
		r.mustDial()
	}
	for _, f := range established {
		r.expectAlive("established", f, true)
	}
	if got := r.table.HalfOpen(); got > 4 {
		t.Errorf("%d are half-open, want at most 4", got)
	}
	checked(t, r.table)
}

// The bound is reached by connections that are half-open, not by how many there were.
func TestHalfOpenCountsOnlyHalfOpen(t *testing.T) {
	r := newHalfOpenRun(t, 64)
	var slow []*Flow
	for i := range 400 {
		f, rev := r.mustDial()
		if i < 30 {
			slow = append(slow, f) // slow clients, less than the bound
			continue
		}
		r.establish(f, rev)
		r.now++
	}
	for _, f := range slow {
		r.expectAlive("less than the bound are half-open", f, true)
	}
	if got := r.table.HalfOpenEvicted(); got != 0 {
		t.Errorf("%d evictions below the bound", got)
	}
}

func TestHalfOpenRefusesWhenAllAreYoung(t *testing.T) {
	r := newHalfOpenRun(t, 4)
	for range 4 {
		r.mustDial()
	}
	f, rev, result := r.dial()
	if result != HalfOpenFull {
		t.Fatalf("fifth within a tick: %v, want half-open full", result)
	}
	r.expectAlive("the refused leaves nothing behind", f, false)
	r.expectAlive("the refused leaves nothing behind", rev, false)
	udp, udpRev := udp4.connect(1, 1, 1)
	mustInsert(t, r.table, udp, udpRev, r.now)
	later, laterRev := tcp4.connect(900, 1, 1)
	later.State, laterRev.State = StateSeen|StateACK, StateSeen|StateACK
	mustInsert(t, r.table, later, laterRev, r.now)
	r.now += grace
	r.mustDial()
	checked(t, r.table)
}

// The oldest has just been established, which nobody has looked at yet: its place is free.
func TestHalfOpenOldestEstablished(t *testing.T) {
	r := newHalfOpenRun(t, 64)
	oldest, rev := r.mustDial()
	for range 63 {
		r.mustDial()
	}
	r.establish(oldest, rev)
	r.mustDial()
	r.expectAlive("established", oldest, true)
	checked(t, r.table)
}

// A refused connection is a tombstone; a flood of them is bounded as well.
func TestHalfOpenBoundsRefusedConnections(t *testing.T) {
	r := newHalfOpenRun(t, 4)
	for range 100 {
		_, rev := r.mustDial()
		if !r.table.Touch(rev, StateOf(packet.FlagRST|packet.FlagACK), r.now) {
			t.Fatal("flow is gone")
		}
		r.now += grace
	}
	if got := r.table.Len(); got > 4 {
		t.Errorf("%d flows are left of refused connections, want at most 4", got)
	}
	checked(t, r.table)
}

func TestHalfOpenForgetsDeleted(t *testing.T) {
	r := newHalfOpenRun(t, 4)
	for range 100 {
		f, _ := r.mustDial()
		r.table.Delete(f)
	}
	if got := r.table.HalfOpenEvicted(); got != 0 {
		t.Errorf("%d evictions, nothing was half-open", got)
	}
	checked(t, r.table)
}

// Sweep finds out that connections were established, so that the number is near the
// truth on a quiet node.
func TestSweepCorrectsHalfOpenCount(t *testing.T) {
	r := newHalfOpenRun(t, 100)
	for range 40 {
		r.establish(r.mustDial())
	}
	r.mustDial()
	timeouts := DefaultTimeouts()
	for range 2 {
		r.table.Sweep(r.now, len(r.table.slots), &timeouts, nil)
	}
	if got := r.table.HalfOpen(); got != 1 {
		t.Errorf("%d are half-open, want 1", got)
	}
	checked(t, r.table)
}

func TestSetHalfOpenMax(t *testing.T) {
	r := newHalfOpenRun(t, 100)
	var all []*Flow
	for range 10 {
		f, _ := r.mustDial()
		all = append(all, f)
		r.now++
	}
	r.establish(all[0], mustPeer(t, r.table, all[0]))
	r.table.SetHalfOpenMax(3)
	checked(t, r.table)
	r.expectAlive("established", all[0], true)
	for i, f := range all[1:] {
		r.expectAlive("the newest three stay", f, i >= 6)
	}
	r.table.SetHalfOpenMax(50)
	if got := r.table.HalfOpen(); got != 3 {
		t.Errorf("%d are half-open after the bound was raised, want 3", got)
	}
	r.table.SetHalfOpenMax(0)
	if got, want := r.table.half.max(), r.table.Cap()/4; got != want {
		t.Errorf("default bound is %d, want %d", got, want)
	}
	checked(t, r.table)
}

func mustPeer(t *testing.T, table *Table, f *Flow) *Flow {
	t.Helper()
	var peer Flow
	if !table.Peer(f, &peer) {
		t.Fatal("flow is gone")
	}
	return &peer
}

// A replaced connection begins again, at the end of the queue.
func TestReplaceIsHalfOpenAgain(t *testing.T) {
	r := newHalfOpenRun(t, 2)
	first, rev := r.mustDial()
	r.establish(first, rev)
	r.now += 10
	second, _ := r.mustDial()
	r.now += 10
	fwd, rev2 := tcp4.connect(1, 1000, 2)
	if result := r.table.Replace(first, fwd, rev2, r.now); result != Inserted {
		t.Fatalf("Replace is %v", result)
	}
	r.now += 10
	r.mustDial()
	r.expectAlive("the replaced is younger", fwd, true)
	r.expectAlive("the second is the oldest", second, false)
	checked(t, r.table)
}
