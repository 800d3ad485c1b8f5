package conntrack

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

var modelSteps = flag.Int("model-steps", 200_000, "random operations for each model test")

// model is the flow table as a map: slow and obvious.
type model struct {
	flows map[Tuple]*modelFlow // by either direction's tuple
}

type modelFlow struct {
	fwd, rev Flow
	life     int // tells this flow from later ones with its tuple
}

func (m *model) count() int { return len(m.flows) / 2 }

func (m *model) add(f *modelFlow) {
	m.flows[f.fwd.Tuple], m.flows[f.rev.Tuple] = f, f
}

func (m *model) remove(f *modelFlow) {
	delete(m.flows, f.fwd.Tuple)
	delete(m.flows, f.rev.Tuple)
}

// other is the direction that side is not.
func (f *modelFlow) other(t Tuple) *Flow {
	if f.fwd.Tuple == t {
		return &f.rev
	}
	return &f.fwd
}

func (f *modelFlow) side(t Tuple) *Flow {
	if f.fwd.Tuple == t {
		return &f.fwd
	}
	return &f.rev
}

// modelRun drives a table and the model through the same random operations.
type modelRun struct {
	*testing.T
	rand  *rand.Rand
	table *Table
	mem   memory
	model model
	now   uint32
	lives int
	held  []held // copies handed out earlier, some of them stale
	full  int
}

type held struct {
	flow Flow
	life int
}

var modelTimeouts = Timeouts{
	TCPHalfOpen: 20 << TickShift, TCPEstablished: 200 << TickShift, TCPClosing: 100 << TickShift, TCPClosed: 10 << TickShift,
	UDPNew: 15 << TickShift, UDP: 50 << TickShift,
}

func TestAgainstModel(t *testing.T) {
	for _, slots := range []int{8, 64, 1024} {
		t.Run(fmt.Sprintf("slots=%d", slots), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			mem := newMemory(RoundSlots(slots))
			table, _, err := mem.open()
			if err != nil {
				t.Fatal(err)
			}
			r := &modelRun{T: t, rand: rand.New(rand.NewPCG(seed, 1)), table: table, mem: mem, model: model{map[Tuple]*modelFlow{}}, now: 0xffffff00}
			r.open()
			steps := slower(*modelSteps)
			for step := range steps {
				r.step()
				if step%(steps/100) == 0 {
					r.compare()
				}
			}
			r.compare()
			if slots == 8 && r.full == 0 {
				t.Error("the table was never full, which the test is meant to reach")
			}
		})
	}
}

// open lets half-open flows be as many as fit: their bound has tests of its own.
func (r *modelRun) open() { r.table.SetHalfOpenMax(r.table.Cap()) }

// random makes a pair out of few enough tuples that they meet.
func (r *modelRun) random() (fwd, rev *Flow) {
	s := []service{tcp4, tcp6, udp4, udp6}[r.rand.IntN(4)]
	spread := r.table.Cap()/8 + 1
	fwd, rev = s.connect(r.rand.IntN(spread), uint16(1+r.rand.IntN(3)), 1+r.rand.IntN(3))
	if r.rand.IntN(4) == 0 { // another VIP: clashes with the first
		last := byte(2)
		fwd.Dst[15], rev.Rewrite.Src[15] = last, last
	}
	fwd.Stamp.Backend, rev.Rewrite.L3, rev.In = uint16(r.rand.Uint32()), uint16(r.rand.Uint32()), uint16(r.rand.Uint32())
	return fwd, rev
}

func (r *modelRun) step() {
	switch n := r.rand.IntN(100); {
	case n < 25:
		r.insert()
	case n < 40:
		r.lookup()
	case n < 70:
		r.touch()
	case n < 80:
		r.replace()
	case n < 84:
		r.delete()
	case n < 87:
		r.restamp()
	case n < 89:
		r.install()
	case n < 97:
		r.now += uint32(r.rand.IntN(3))
	case n < 99:
		r.sweep()
	default:
		r.reopen()
	}
}

func (r *modelRun) insert() {
	fwd, rev := r.random()
	want := Inserted
	existing := r.model.flows[fwd.Tuple]
	switch {
	case existing != nil:
		want = Exists
	case r.model.flows[rev.Tuple] != nil:
		want = Clash
	}
	wantFwd, wantRev := *fwd, *rev
	got := r.table.Insert(fwd, rev, r.now)
	if got == Full && want == Inserted && r.crowded(&wantFwd, &wantRev) {
		r.full++
		return
	}
	if got != want {
		r.Fatalf("Insert(%v) is %v, want %v", wantFwd.Tuple, got, want)
	}
	switch got {
	case Inserted:
		r.adopt(wantFwd, wantRev)
		r.hold(fwd, r.lives)
		r.hold(rev, r.lives)
	case Exists:
		r.same(fwd, existing.side(fwd.Tuple))
		r.hold(fwd, existing.life)
	}
}

// crowded reports whether one of the tuples has no free slot left in its buckets.
func (r *modelRun) crowded(fwd, rev *Flow) bool {
	var p pair
	p.encode(&r.table.Reader, fwd, rev)
	free := func(h homes) (n int) {
		all := h.buckets()
		for i, bucket := range all {
			if !slices.Contains(all[:i], bucket) {
				_, m := r.table.vacancy(bucket, 0)
				n += m
			}
		}
		return n
	}
	return free(p.fh) == 0 || free(p.rh) <= 1
}

// adopt enters a flow into the model as the table should hold it.
func (r *modelRun) adopt(fwd, rev Flow) {
	r.lives++
	fwd.Rewrite.L4, rev.Rewrite.L4 = l4Difference(&fwd), l4Difference(&rev)
	fwd.Flags &^= FlagReply
	rev.Flags |= FlagReply
	fwd.LastSeen, rev.LastSeen = r.now, r.now
	r.model.add(&modelFlow{fwd: fwd, rev: rev, life: r.lives})
}

func (r *modelRun) hold(f *Flow, life int) {
	h := held{*f, life}
	if len(r.held) < 64 {
		r.held = append(r.held, h)
		return
	}
	r.held[r.rand.IntN(len(r.held))] = h
}

// alive is the model's side of a copy, nil when the flow has gone since.
func (r *modelRun) alive(h *held) (*modelFlow, *Flow) {
	f := r.model.flows[h.flow.Tuple]
	if f == nil || f.life != h.life {
		return nil, nil
	}
	return f, f.side(h.flow.Tuple)
}

func (r *modelRun) pick() *held {
	if len(r.held) == 0 {
		return &held{}
	}
	return &r.held[r.rand.IntN(len(r.held))]
}

func (r *modelRun) same(got, want *Flow) {
	r.Helper()
	g := *got
	g.slot, g.incarnation = 0, 0
	if g != *want {
		r.Fatalf("flow is\n%+v, want\n%+v", g, *want)
	}
}

func (r *modelRun) lookup() {
	fwd, rev := r.random()
	for _, tuple := range []Tuple{fwd.Tuple, rev.Tuple} {
		var got, peer Flow
		want := r.model.flows[tuple]
		if r.table.Lookup(&tuple, &got) != (want != nil) {
			r.Fatalf("Lookup(%v) is %v", tuple, want == nil)
		}
		if want == nil {
			continue
		}
		r.same(&got, want.side(tuple))
		if !r.table.Peer(&got, &peer) {
			r.Fatalf("%v has no peer", tuple)
		}
		r.same(&peer, want.side(peer.Tuple))
		r.hold(&got, want.life)
	}
}

func (r *modelRun) touch() {
	h := r.pick()
	flags := []uint8{0, packet.FlagSYN, packet.FlagACK, packet.FlagACK, packet.FlagACK | packet.FlagFIN, packet.FlagRST}
	bits := StateOf(flags[r.rand.IntN(len(flags))])
	_, want := r.alive(h)
	now := r.now - uint32(r.rand.IntN(2))
	if got := r.table.Touch(&h.flow, bits, now); got != (want != nil) {
		r.Fatalf("Touch(%v) is %v", h.flow.Tuple, got)
	}
	if want == nil {
		return
	}
	if bits&StateACK != 0 {
		want.State &^= StateRST
	}
	want.State |= bits
	if int32(now-want.LastSeen) > 0 {
		want.LastSeen = now
	}
	if h.flow.State != want.State || h.flow.LastSeen != want.LastSeen {
		r.Fatalf("state is %#x at %d, want %#x at %d", h.flow.State, h.flow.LastSeen, want.State, want.LastSeen)
	}
}

func (r *modelRun) replace() {
	h := r.pick()
	flow, _ := r.alive(h)
	if h.flow.Flags&FlagReply != 0 || h.life == 0 {
		return
	}
	fwd, rev := r.random()
	other := r.rand.IntN(8) == 0 && fwd.Tuple != h.flow.Tuple
	if !other { // same forward tuple, the random backend
		if fwd.Src.Is4() != h.flow.Src.Is4() || fwd.Protocol != h.flow.Protocol {
			return
		}
		fwd.Tuple = h.flow.Tuple
		rev.Dst, rev.DstPort = fwd.Src, fwd.SrcPort
	}
	want := Inserted
	switch clash := r.model.flows[rev.Tuple]; {
	case other:
		want = Invalid
	case flow == nil:
		want = Gone
	case clash != nil && (clash != flow || rev.Tuple == fwd.Tuple):
		want = Clash
	}
	wantFwd, wantRev := *fwd, *rev
	got := r.table.Replace(&h.flow, fwd, rev, r.now)
	if got == Full && want == Inserted {
		r.full++
		return
	}
	if got != want {
		r.Fatalf("Replace(%v by %v) is %v, want %v", h.flow.Tuple, rev.Tuple, got, want)
	}
	if got == Inserted {
		r.model.remove(flow)
		r.adopt(wantFwd, wantRev)
		r.hold(fwd, r.lives)
	}
}

func (r *modelRun) delete() {
	h := r.pick()
	flow, _ := r.alive(h)
	if got := r.table.Delete(&h.flow); got != (flow != nil) {
		r.Fatalf("Delete(%v) is %v", h.flow.Tuple, got)
	}
	if flow != nil {
		r.model.remove(flow)
	}
}

func (r *modelRun) restamp() {
	h := r.pick()
	flow, want := r.alive(h)
	stamp, target, mode := Stamp{uint16(r.rand.Uint32()), 2, 3}, uint16(r.rand.Uint32()), Mode(r.rand.IntN(int(lastMode)+1))
	if got := r.table.Restamp(&h.flow, stamp, target); got != (want != nil) {
		r.Fatalf("Restamp(%v) is %v", h.flow.Tuple, got)
	}
	if got := r.table.SetMode(&h.flow, mode); got != (want != nil) {
		r.Fatalf("SetMode(%v) is %v", h.flow.Tuple, got)
	}
	if want != nil {
		want.Stamp, want.Target, want.Mode = stamp, target, mode
		flow.other(want.Tuple).In = target
	}
}

func (r *modelRun) install() {
	h := r.pick()
	flow, _ := r.alive(h)
	if got := r.table.InstallPair(&h.flow); got != (flow != nil) {
		r.Fatalf("InstallPair(%v) is %v", h.flow.Tuple, got)
	}
	if flow != nil {
		flow.fwd.Mode, flow.rev.Mode = ModeLane, ModeLane
	}
}

// sweep goes over the whole table; flows of one backend are gone as well.
func (r *modelRun) sweep() {
	gone := func(f *Flow) bool { return f.Backend == 2 && f.SrcPort == 1 }
	want := 0
	for tuple, f := range r.model.flows {
		if tuple != f.fwd.Tuple {
			continue
		}
		if r.old(f) || gone(&f.fwd) {
			r.model.remove(f)
			want++
		}
	}
	if got := r.table.Sweep(r.now, len(r.table.slots), &modelTimeouts, gone); got != want {
		r.Fatalf("Sweep took out %d, want %d", got, want)
	}
}

func (r *modelRun) old(f *modelFlow) bool {
	idle := min(int32(r.now-f.fwd.LastSeen), int32(r.now-f.rev.LastSeen))
	limit := modelTimeouts.UDP
	switch {
	case f.fwd.Protocol == packet.ProtocolTCP:
		limit = map[TCP]int64{
			HalfOpen: modelTimeouts.TCPHalfOpen, Established: modelTimeouts.TCPEstablished,
			Closing: modelTimeouts.TCPClosing, Closed: modelTimeouts.TCPClosed,
		}[TCPState(f.fwd.State, f.rev.State)]
	case f.rev.State&StateSeen == 0:
		limit = modelTimeouts.UDPNew
	}
	return int64(idle) > limit>>TickShift
}

// reopen is what a restarted process does. It may find other tags than it left.
func (r *modelRun) reopen() {
	if r.rand.IntN(2) == 0 {
		r.mem.scramble(r.rand)
	}
	table, report, err := r.mem.open()
	if err != nil {
		r.Fatal(err)
	}
	if report.Flows != r.model.count() || report.Torn+report.Half+report.Damaged != 0 {
		r.Fatalf("Map found %+v, want %d flows and nothing wrong", report, r.model.count())
	}
	r.table = table
	r.open()
}

func (r *modelRun) compare() {
	r.Helper()
	checked(r.T, r.table)
	if r.table.Len() != r.model.count() {
		r.Fatalf("Len is %d, want %d", r.table.Len(), r.model.count())
	}
	for tuple, want := range r.model.flows {
		var got Flow
		if !r.table.Lookup(&tuple, &got) {
			r.Fatalf("%v is missing", tuple)
		}
		r.same(&got, want.side(tuple))
	}
}
