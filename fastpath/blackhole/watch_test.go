package blackhole

import (
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

func flow(port uint16) *Hole {
	return &Hole{Tuple: conntrack.Tuple{
		Src: packet.AddrFrom(netip.MustParseAddr("10.0.0.1")), Dst: packet.AddrFrom(netip.MustParseAddr("10.0.0.2")),
		SrcPort: port, DstPort: 80, Protocol: packet.ProtocolUDP,
	}, In: 2, Out: 3, MTU: 1400, Longest: 1500}
}

// TestTold: when a sender that is told counts as one that does not listen.
func TestTold(t *testing.T) {
	for _, c := range []struct {
		sentence string
		every    time.Duration
		packets  int
		lost     uint64 // 0: no hole
	}{
		{"a window that was on its way when the first one was answered", time.Millisecond, 1000, 0},
		{"a probe for the MTU, in one go", 100 * time.Millisecond, 18, 0},
		{"a probe now and then", 61 * time.Second, 100, 0},
		{"a sender that goes on for eight", time.Second, 8, 0},
		{"and for nine", time.Second, 9, 1},
		{"and for good", time.Second, 100, 92},
	} {
		var w Watch
		now := int64(time.Hour)
		for range c.packets {
			h := flow(4000)
			h.Seen = now
			w.Told(h)
			now += int64(c.every)
		}
		holes, changed := w.Holes()
		if got := holes[0].Packets; got != c.lost || changed != (c.lost != 0) || (holes[0].Kind == Unheeded) != changed {
			t.Errorf("%s: %d packets lost (%s), want %d", c.sentence, got, holes[0].Kind, c.lost)
		}
	}
}

// TCP that hears nothing sends the same segment again, at intervals that double.
func TestToldTCP(t *testing.T) {
	var w Watch
	at, gap := time.Hour, 200*time.Millisecond
	for at < time.Hour+time.Minute {
		h := flow(4000)
		h.Seen = int64(at)
		w.Told(h)
		at, gap = at+gap, 2*gap
	}
	if holes, _ := w.Holes(); holes[0].Kind != Unheeded {
		t.Error("not named within a minute")
	}
}

// TestUntold: the last few flows are remembered, each once.
func TestUntold(t *testing.T) {
	var w Watch
	if holes, changed := w.Holes(); changed || holes[0].Kind != None {
		t.Error("something is known at first")
	}
	for round := range 3 {
		for i := range Holes + 2 {
			h := flow(uint16(4000 + i))
			h.Seen, h.Longest = int64(round*100+i+1), uint32(1500+round)
			w.Untold(h)
			w.Untold(h)
		}
	}
	holes, changed := w.Holes()
	if _, again := w.Holes(); !changed || again {
		t.Errorf("changed %v, then %v", changed, again)
	}
	seen := map[uint16]bool{}
	for _, h := range holes {
		seen[h.Tuple.SrcPort] = true
		if h.Kind != Untold || h.Longest != 1502 || h.Packets%2 != 0 || h.MTU != 1400 || h.Out != 3 {
			t.Errorf("%+v", h)
		}
	}
	for i := 2; i < Holes+2; i++ {
		if !seen[uint16(4000+i)] {
			t.Errorf("flow %d is forgotten, and %v are known", 4000+i, seen)
		}
	}
	h := flow(1)
	if n := testing.AllocsPerRun(100, func() { w.Untold(h); w.Told(h); w.Holes() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMergeAndCurrent(t *testing.T) {
	a, b, other := *flow(1), *flow(1), *flow(2)
	a.Kind, a.Packets, a.Seen = Untold, 3, 10
	b.Kind, b.Packets, b.Seen, b.Longest, b.In = Untold, 4, 20, 1600, 9
	other.Kind, other.Packets, other.Seen = Unheeded, 1, 30
	got := Merge([]Hole{a, {}, b, other})
	if len(got) != 2 || got[0].Kind != Unheeded || got[1].Packets != 7 || got[1].Seen != 20 || got[1].Longest != 1600 || got[1].In != 9 {
		t.Errorf("%+v", got)
	}
	if now := Current(got, 25+int64(Lasting)); len(now) != 1 || now[0].Kind != Unheeded {
		t.Errorf("current: %+v", now)
	}
	if Untold.String() != "untold" || Unheeded.String() != "unheeded" || Kinds.String() != "unknown" {
		t.Error("words of kinds")
	}
}
