package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
)

// TestCut: a whole packet that is too long for its way out, and that routers may cut, arrives
// in fragments.
func TestCut(t *testing.T) {
	web := and(serving("vip", "web:8080"), narrow("web", 1000))
	for _, c := range []struct {
		sentence string
		given    func(*world)
		before   []step
		sends    string
		at       string
		is       string // of each frame that leaves
		becomes  string
		via      string
	}{
		{"the first packet of a flow", web, nil, "client:4000 > vip:80", "", "new-flow+cut+cut", "client:4000 > web:8080", "direct web"},
		{"a packet of a flow that is known", web, talking, "client:4000 > vip:80", "", "established+cut+cut", "client:4000 > web:8080", "direct web"},
		{"a reply", and(web, narrow("client", 700)), talking, "web:8080 > client:4000", "", "reply+cut+cut", "vip:80 > client:4000", "direct client"},
		{"from outside, to another node, in the node's name", and(serving("vip", "remote:8080"), narrow("wire", 1400)), nil,
			"outside:4000 > vip:80", "", "new-flow+cut", "node:* > remote:8080", "direct wire"},
		{"from the node itself", web, nil, "node:4000 > vip:80", "", "new-flow+cut+cut", "node:4000 > web:8080", "direct web"},
		{"from a pod to itself", and(serving("vip", "client:8080"), narrow("client", 1400)), nil,
			"client:4000 > vip:80", "", "new-flow+cut", "vip:4000 > client:8080", "direct client"},
		{"from the node's own stack on its way out to the client", and(serving("vip", "node:8080"), narrow("client", 1400)),
			[]step{{sends: "client:4000 > vip:80", is: reason.NewFlow, becomes: "client:4000 > node:8080", via: "stack client"}},
			"node:8080 > client:4000", "out client", "reply+cut", "vip:80 > client:4000", "direct client"},
		{"to the node's own stack: the device is not asked", and(serving("vip", "node:8080"), narrow("node", 700)), nil,
			"client:4000 > vip:80", "", "new-flow", "client:4000 > node:8080", "stack client"},
	} {
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP} {
			t.Run(fmt.Sprintf("%s/%sv4", c.sentence, packet.ProtocolName(protocol)), func(t *testing.T) {
				w := newWorld(t, 4, protocol)
				c.given(w)
				for i := range c.before {
					w.play(i, &c.before[i])
				}
				k := pieces{protocol: protocol, sends: c.sends, becomes: c.becomes, via: c.via}
				whole := k.frame(w)
				got, out := w.arrive(whole, w.punt(&step{sends: c.sends, at: c.at}))
				if got != c.is {
					t.Fatalf("%s, want %s", got, c.is)
				}
				if len(out) == 1 {
					if out[0].via != c.via || frame.Check(out[0].bytes) != nil {
						t.Errorf("left %s: %v", out[0].via, frame.Check(out[0].bytes))
					}
					return
				}
				k.check(w, whole, out)
				for _, o := range out {
					if how, port, ok := packet.ReadInject(o.bytes); !ok || how != packet.Direct || fmt.Sprint("direct ", portNameOf(port)) != c.via {
						t.Errorf("a frame says %d, %d, %v itself", how, port, ok)
					}
				}
			})
		}
	}
}

// Two clients in one name use one identification; what leaves has two.
func TestCutNumbers(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolUDP)
	w.serve("vip", "remote:8080")
	narrow("wire", 1400)(w)
	seen := map[uint32]bool{}
	for i := range 100 {
		f := frame.UDP(w.endpoint("outside:4000").String(), w.endpoint("vip:80").String(), strings.Repeat("x", 1450))
		f.ID = 5
		f = sourcePorted(f, uint16(4000+i))
		_, out := w.arrive(f.Bytes(), packet.Punt{Port: portIDs["wire"]})
		for n, o := range out {
			p, err := frame.ReadPart(o.bytes)
			if err != nil || len(out) != 2 {
				t.Fatalf("%d frames: %v", len(out), err)
			}
			if n == 0 && seen[p.Of.ID] {
				t.Fatalf("identification %d comes twice", p.Of.ID)
			}
			seen[p.Of.ID] = true
		}
	}
}

func sourcePorted(f frame.Frame, port uint16) frame.Frame { sourcePort(port)(&f); return f }

// What is left of a packet that was cut is dropped by name when nobody asks for it, and does
// not get among the next packet's.
func TestCutIsAbandoned(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolUDP)
	w.serve("vip", "web:8080")
	narrow("web", 1000)(w)
	punt := packet.Punt{Port: portIDs["client"]}
	long := frame.UDP(w.endpoint("client:4000").String(), w.endpoint("vip:80").String(), strings.Repeat("x", 2500)).Bytes()
	short := frame.UDP(w.endpoint("client:4000").String(), w.endpoint("vip:80").String(), "x").Bytes()
	process := func(b []byte) Result {
		return w.pipeline.Process(w.snapshot, append(make([]byte, 0, 4096), b...), punt, int64(w.clock), nil)
	}
	if r := process(long); !r.More || r.Len != 14+996 {
		t.Fatalf("%+v, want more behind 1,010 bytes", r)
	}
	if r := process(short); r.More || r.Reason != reason.Established {
		t.Errorf("%+v of a packet that is not cut", r)
	}
	w.pipeline.Lost(int64(w.clock), func(r reason.Reason, frames, bytes int) {
		met.Lock()
		met.reasons[r] = true
		met.Unlock()
		if r != reason.RingFull || frames != 2 || bytes != 1532+2*34 {
			t.Errorf("%d frames of %d bytes lost as %s, want two", frames, bytes, r)
		}
	})
	process(long)
	if length, r := w.pipeline.Next(w.snapshot, make([]byte, 0, 500), int64(w.clock), nil); length != 14+996 || r.Reason != reason.TooBig || r.Verdict != Drop || !r.More {
		t.Errorf("%d bytes, %+v of a fragment without room", length, r)
	}
}

// TestCutDoesNotAllocate: nor do the frames behind it.
func TestCutDoesNotAllocate(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolUDP)
	w.serve("vip", "web:8080")
	narrow("web", 1000)(w)
	raw := frame.UDP(w.endpoint("client:4000").String(), w.endpoint("vip:80").String(), strings.Repeat("x", 2500)).Bytes()
	b, room := make([]byte, 4096), make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		r := w.pipeline.Process(w.snapshot, b[:copy(b, raw)], packet.Punt{Port: portIDs["client"]}, int64(w.clock), nil)
		for r.More {
			_, r = w.pipeline.Next(w.snapshot, room, int64(w.clock), nil)
		}
		if r.Reason != reason.Cut {
			t.Fatal(r.Reason)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
