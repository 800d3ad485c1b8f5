package pipeline

import (
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
)

// named are the black holes that the world's pipeline knows.
func (w *world) named() (out []blackhole.Hole) {
	holes, _ := w.pipeline.BlackHoles()
	return blackhole.Merge(holes[:])
}

// TestBlackHoles: who loses packets for their length, and where, is known.
func TestBlackHoles(t *testing.T) {
	small := and(serving("vip", "web:8080"), narrow("web", 1400))
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, packet.ProtocolUDP)
		small(w)
		say := func(at string, n int, want reason.Reason) {
			t.Helper()
			if r := w.send(&step{sends: "client:4000 > vip:80", at: at, with: sized(n)}); r.Reason != want {
				t.Fatalf("v%d: %s, want %s", family, r.Reason, want)
			}
		}
		for i := range 9 {
			if got := w.named(); len(got) != 0 {
				t.Fatalf("v%d: named after %d answers: %+v", family, i, got)
			}
			say("", 1401+i, reason.PacketTooBig)
			w.clock += time.Second
		}
		got := w.named()
		if len(got) != 1 || got[0].Kind != blackhole.Unheeded || got[0].In != portIDs["client"] || got[0].Out != portIDs["web"] ||
			got[0].MTU != 1400 || got[0].Longest != 1409 || got[0].Tuple.Dst.Netip() != w.addr("vip") || got[0].Tuple.SrcPort != 4000 {
			t.Errorf("v%d: after nine answers %+v", family, got)
		}
		say("", 1000, reason.NewFlow)
		say("in other", 1500, reason.TooBig) // in another's name: nobody to tell
		if got := w.named(); len(got) != 2 || got[0].Kind != blackhole.Untold || got[0].In != portIDs["other"] || got[0].Packets != 1 {
			t.Errorf("v%d: %+v", family, got)
		}
	}
}

// A packet of which only the beginning is here is as long as its header says.
func TestBlackHoleOfTheTrunk(t *testing.T) {
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, packet.ProtocolUDP)
		w.serve("vip", "web:8080")
		w.contents.Settings.NodeAddr4, w.contents.Settings.NodeAddr6 = packet.Addr{}, packet.Addr{}
		w.publish()
		f := frame.UDP(w.endpoint("client:4000").String(), w.endpoint("vip:80").String(), strings.Repeat("x", 8900))
		b := f.Bytes()
		n := len(b) - 14
		r := w.pipeline.Process(w.snapshot, b[:2000:4000], packet.Punt{Port: portIDs["client"], Cut: true}, int64(w.clock), nil)
		got := w.named()
		if r.Reason != reason.TooBig || len(got) != 1 || got[0].Longest != uint32(n) || got[0].Out != portIDs["node"] {
			t.Errorf("v%d: %s, %+v: want %d bytes that do not fit the trunk", family, r.Reason, got, n)
		}
	}
}

func TestBlackHolesDoNotAllocate(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolUDP)
	serving("vip", "web:8080")(w)
	narrow("web", 1400)(w)
	w.contents.Settings.AnswersPerSecond = 1 << 30
	w.publish()
	f := w.frame(0, &step{sends: "client:4000 > vip:80", with: sized(1500)})
	raw, b, punt := f.Bytes(), make([]byte, 2048), packet.Punt{Port: portIDs["client"]}
	if n := testing.AllocsPerRun(100, func() {
		w.clock += time.Second
		w.pipeline.Process(w.snapshot, b[:copy(b, raw)], punt, int64(w.clock), nil)
		w.pipeline.BlackHoles()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := w.named(); len(got) != 1 || got[0].Kind != blackhole.Unheeded {
		t.Errorf("%+v", got)
	}
}
