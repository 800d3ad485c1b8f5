package police

import "testing"

// trunk is a receive ring in front of a worker, and ports that send into it, in steps of a
// tenth of a millisecond of a clock of its own.
type trunk struct {
	governor *Governor
	now      int64
	waiting  float64
	capacity float64   // packets per second
	demand   []float64 // of each port, new flows per second
	allowed  float64   // per port, 0: all

	lost      float64 // packets that found the ring full
	delivered []float64
	fullest   float64
}

const (
	ring = 2048
	tick = int64(1e5)
)

func newTrunk(capacity float64, demand ...float64) *trunk {
	t := &trunk{capacity: capacity, demand: demand, delivered: make([]float64, len(demand))}
	t.governor = NewGovernor(DefaultRate, DefaultBurst, func(l Limits) { t.allowed = float64(l.PerSecond[New]) })
	return t
}

// run lets so many seconds pass.
func (t *trunk) run(seconds float64) {
	for range int(seconds * 1e9 / float64(tick)) {
		t.now += tick
		dt := float64(tick) / 1e9
		for i, d := range t.demand {
			if t.allowed > 0 {
				d = min(d, t.allowed)
			}
			in := d * dt
			t.lost += max(t.waiting+in-ring, 0)
			t.delivered[i] += min(in, ring-t.waiting)
			t.waiting = min(t.waiting+in, ring)
		}
		t.waiting = max(t.waiting-t.capacity*dt, 0)
		t.fullest = max(t.fullest, t.waiting)
		t.governor.Note(t.now, int(t.waiting), ring)
	}
}

// settle forgets what was before.
func (t *trunk) settle() {
	t.lost, t.fullest = 0, 0
	clear(t.delivered)
}

// Nobody is held back as long as Go keeps up, however unevenly ports ask.
func TestOpenWhileThereIsRoom(t *testing.T) {
	tr := newTrunk(300_000, 250_000, 1_000)
	tr.run(2)
	if tr.allowed != 0 || tr.lost != 0 {
		t.Errorf("limit %.0f, %.0f packets lost; want none of either", tr.allowed, tr.lost)
	}
}

// One port that floods is held near what Go can do, alone: it may have what is left, the
// queue stays short, and those that ask for little lose nothing.
func TestOneFlood(t *testing.T) {
	tr := newTrunk(300_000, 1_000_000, 5_000, 9_000)
	tr.run(0.1)
	tr.settle()
	tr.run(2)
	if tr.lost > 0 {
		t.Errorf("%.0f packets found the ring full", tr.lost)
	}
	if tr.fullest > ring/2 {
		t.Errorf("%.0f frames waited, want at most half a ring", tr.fullest)
	}
	for i, want := range []float64{200_000, 5_000, 9_000} {
		if got := tr.delivered[i] / 2; got < 0.999*want {
			t.Errorf("port %d was given %.0f packets a second, want at least %.0f", i, got, want)
		}
	}
}

// Ports that flood share evenly, and a port that asks for less than its share still loses
// nothing.
func TestManyFloods(t *testing.T) {
	tr := newTrunk(300_000, 1_000_000, 400_000, 200_000, 300_000, 20_000)
	tr.run(0.3)
	tr.settle()
	tr.run(2)
	least, most := tr.delivered[0], tr.delivered[0]
	for _, d := range tr.delivered[:4] {
		least, most = min(least, d), max(most, d)
	}
	if most > 1.05*least {
		t.Errorf("ports that flood were given %v", tr.delivered[:4])
	}
	if got := tr.delivered[4] / 2; got < 0.999*20_000 || tr.lost > 0 {
		t.Errorf("the port that asks for 20,000 a second was given %.0f; %.0f packets were lost", got, tr.lost)
	}
}

// The limit goes away after the flood.
func TestOpensAgain(t *testing.T) {
	tr := newTrunk(300_000, 1_000_000)
	tr.run(0.5)
	if tr.allowed == 0 {
		t.Fatal("a flood is not limited")
	}
	tr.demand[0] = 1_000
	tr.run(1)
	if tr.allowed != 0 {
		t.Errorf("a second after the flood the limit is %.0f, want none", tr.allowed)
	}
	if l := tr.governor.Limits(); l != (Limits{Burst: DefaultBurst}) {
		t.Errorf("limits %+v", l)
	}
}

// It goes away as well when the workers have nothing to do afterwards, and look only when
// they wake to see whether they are to stop.
func TestOpensWhileIdle(t *testing.T) {
	tr := newTrunk(300_000, 1_000_000)
	tr.run(0.5)
	if tr.allowed == 0 {
		t.Fatal("a flood is not limited")
	}
	for range 10 {
		tr.now += 1e8
		tr.governor.Note(tr.now, 0, ring)
	}
	if tr.allowed != 0 {
		t.Errorf("a second after the flood the limit is %.0f, want none", tr.allowed)
	}
}

// A worker that stands still takes nobody's promised rate away.
func TestFloor(t *testing.T) {
	var got Limits
	g := NewGovernor(5_000, 10, func(l Limits) { got = l })
	for now := int64(1); now < int64(5e9); now += 2e6 {
		g.Note(now, ring, ring)
	}
	want := Limits{PerSecond: [Asks]uint32{New: 5_000, Flow: 20_000, Again: 5_000}, Burst: 10}
	if got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}

// Packets of flows, and second looks, are held back much later than new flows.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		waiting int
		limited [Asks]bool
	}{
		{ring / 16, [Asks]bool{}},
		{ring / 8, [Asks]bool{New: true}},
		{ring / 2, [Asks]bool{New: true, Again: true}},
		{ring * 7 / 8, [Asks]bool{New: true, Again: true, Flow: true}},
	} {
		var l Limits
		g := NewGovernor(DefaultRate, DefaultBurst, func(n Limits) { l = n })
		g.Note(1, c.waiting, ring)
		for ask := range Ask(Asks) {
			if got := l.PerSecond[ask] > 0; got != c.limited[ask] {
				t.Errorf("%d of %d wait: %s is limited: %v, want %v", c.waiting, ring, ask, got, c.limited[ask])
			}
		}
	}
}

// A worker without anything to do does not open what a busy one has closed.
func TestIdleWorkerBesideBusyOne(t *testing.T) {
	var l Limits
	g := NewGovernor(DefaultRate, DefaultBurst, func(n Limits) { l = n })
	for now := int64(1); now < int64(3e9); now += 1e6 {
		g.Note(now, ring, ring)
		g.Note(now+5e5, 0, ring)
	}
	if l.PerSecond[New] != DefaultRate {
		t.Errorf("limit %d, want %d", l.PerSecond[New], DefaultRate)
	}
}

func TestWords(t *testing.T) {
	for a, want := range map[Ask]string{New: "new", Flow: "flow", Again: "again", 9: "unknown"} {
		if got := a.String(); got != want {
			t.Errorf("%d is %q, want %q", a, got, want)
		}
	}
	var none *Governor
	none.Note(1, ring, ring) // nobody to tell
}

// Note does not allocate, nor apply when nothing changes.
func TestNoteCost(t *testing.T) {
	applied, now := 0, int64(0)
	g := NewGovernor(DefaultRate, DefaultBurst, func(Limits) { applied++ })
	if n := testing.AllocsPerRun(1000, func() { now += 2e6; g.Note(now, ring, ring) }); n != 0 {
		t.Errorf("%.1f allocations", n)
	}
	before := applied
	for range 1000 {
		now += 2e6
		g.Note(now, ring, ring)
	}
	if applied != before {
		t.Errorf("%d changes of a limit that stays", applied-before)
	}
}
