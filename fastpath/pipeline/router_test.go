package pipeline

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// sized is a packet of n bytes from its IP header on that routers must not cut.
func sized(n int) func(*frame.Frame) {
	return func(f *frame.Frame) {
		headers := 20 + hdr(f)
		if f.Src.Addr().Is6() {
			headers += 20
		}
		f.Payload, f.DF = make([]byte, n-headers), f.Src.Addr().Is4()
	}
}

func narrow(port string, mtu uint32) func(*world) {
	return func(w *world) { w.port(port, func(p *table.Port) { p.MTU = mtu }) }
}

func and(a, b func(*world)) func(*world) { return func(w *world) { a(w); b(w) } }

// TestRouterAnswers: who sends what cannot go on is told so, quoting what it sent.
func TestRouterAnswers(t *testing.T) {
	last := func(f *frame.Frame) { f.TTL = 1 }
	tooBig := func(sends, at, speaker, via string, mtu uint32, n int) step {
		return step{sends: sends, at: at, flags: ack, with: sized(n), is: reason.PacketTooBig, answer: true, becomes: speaker, mtu: mtu, via: via}
	}
	exceeded := func(sends, speaker, via string) step {
		return step{sends: sends, flags: ack, with: last, is: reason.TimeExceeded, answer: true, becomes: speaker, via: via}
	}
	openedOutside := step{sends: "outside:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1}
	play(t, []scenario{
		{
			sentence: "a pod is told the MTU of the way to its backend, by the node, quoting the packet to the VIP",
			given:    and(serving("vip", "web:8080"), narrow("web", 1400)),
			steps:    steps(opens, tooBig("client:4000 > vip:80", "", "node", "direct client", 1400, 1401)),
		},
		{
			sentence: "a backend is told the MTU of the way to its client, quoting the packet that it sent",
			given:    and(serving("vip", "web:8080"), narrow("client", 1400)),
			steps:    steps(opens, tooBig("web:8080 > client:4000", "", "node", "direct web", 1400, 1401)),
		},
		{
			sentence: "a client outside is told, by the node",
			given:    and(serving("vip", "web:8080"), narrow("web", 1400)),
			steps:    steps(openedOutside, tooBig("outside:4000 > vip:80", "", "node", "direct wire", 1400, 1401)),
		},
		{
			sentence: "the node's own client is told by the VIP, for the node does not listen to itself",
			given:    and(serving("vip", "web:8080"), narrow("web", 1400)),
			steps: steps(step{sends: "node:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "node:4000 > web:8080", via: "direct web"},
				tooBig("node:4000 > vip:80", "", "vip", "direct node", 1400, 1401)),
		},
		{
			sentence: "a backend in the node's own stack is told by the VIP",
			given:    and(serving("vip", "node:8080"), narrow("client", 1400)),
			steps:    steps(openedToNode, tooBig("node:8080 > client:4000", "out client", "vip", "direct node", 1400, 1401)),
		},
		{
			sentence: "a first packet that is too big is answered, and chooses no backend",
			given:    and(serving("vip", "web:8080"), narrow("web", 1400)),
			steps: []step{
				{sends: "client:4000 > vip:80", flags: syn, with: sized(1401), is: reason.PacketTooBig, answer: true, becomes: "node", mtu: 1400, via: "direct client"},
				{sends: "web:8080 > client:4000", is: reason.NotClaimed, becomes: "=", via: "stack web"},
			},
		},
		{
			sentence: "a long packet is quoted as far as an ICMP error may be long",
			given:    and(serving("vip", "web:8080"), narrow("web", 1400)),
			steps:    steps(opens, tooBig("client:4000 > vip:80", "", "node", "direct client", 1400, 2000)),
		},
		{
			sentence: "a pod is told that its packet's time to live is used up, as traceroute wants it",
			given:    serving("vip", "web:8080"),
			steps:    steps(opens, exceeded("client:4000 > vip:80", "node", "direct client"), speaks),
		},
		{
			sentence: "so is a backend",
			given:    serving("vip", "web:8080"),
			steps:    steps(opens, exceeded("web:8080 > client:4000", "node", "direct web"), answers),
		},
		{
			sentence: "and a client outside",
			given:    serving("vip", "web:8080"),
			steps:    steps(openedOutside, exceeded("outside:4000 > vip:80", "node", "direct wire")),
		},
	})
}

// TestRouterIsSilent: where an answer would reach nobody, or somebody who did not ask.
func TestRouterIsSilent(t *testing.T) {
	small := and(serving("vip", "web:8080"), narrow("web", 1400))
	nameless := func(w *world) {
		w.contents.Settings.NodeAddr4, w.contents.Settings.NodeAddr6 = packet.Addr{}, packet.Addr{}
		w.publish()
	}
	linkLocal := func(w *world) {
		w.contents.Settings.NodeAddr4 = packet.Addr4([4]byte{169, 254, 1, 1})
		w.contents.Settings.NodeAddr6 = packet.Addr{0: 0xfe, 1: 0x80, 15: 1}
		w.publish()
	}
	group := func(f *frame.Frame) { sized(1401)(f); *f = f.From(multicastSource(*f)) }
	play(t, []scenario{
		{
			sentence: "a node without an address of the family says nothing",
			given:    and(small, nameless),
			steps: []step{
				{sends: "client:4000 > vip:80", with: sized(1401), is: reason.TooBig},
				{sends: "client:4000 > vip:80", flags: syn, with: func(f *frame.Frame) { f.TTL = 1 }, is: reason.TTLExceeded},
			},
		},
		{
			sentence: "nor does it speak from an address that means something on one link only",
			given:    and(small, linkLocal),
			steps: []step{
				{sends: "client:4000 > vip:80", with: sized(1401), is: reason.TooBig},
				{sends: "client:4000 > vip:80", flags: syn, with: func(f *frame.Frame) { f.TTL = 1 }, is: reason.TTLExceeded},
			},
		},
		{
			sentence: "a packet of a flow that comes from another than its client is not answered",
			given:    small,
			steps:    steps(opens, step{sends: "client:4000 > vip:80", at: "in other", with: sized(1401), is: reason.TooBig}),
		},
		{
			sentence: "a packet from a group is not answered",
			given:    small,
			steps:    []step{{sends: "outside:4000 > vip:80", with: group, is: reason.TooBig}},
		},
		{
			sentence: "errors to a sender are limited together with refusals",
			given: func(w *world) {
				small(w)
				w.contents.Settings.AnswersPerSecond = 1
				w.publish()
			},
			steps: []step{
				{sends: "client:4000 > vip:80", with: sized(1401), is: reason.PacketTooBig, answer: true, becomes: "node", mtu: 1400, via: "direct client"},
				{sends: "client:4000 > vip:80", flags: syn, with: sized(1401), is: reason.RateLimited},
				{then: later(time.Second), sends: "client:4000 > vip:80", flags: syn, with: sized(1401), is: reason.PacketTooBig, answer: true, becomes: "node", mtu: 1400, via: "direct client"},
			},
		},
	})
}

// TestOversize: of a packet that is longer than the trunk takes only the beginning is here,
// which is enough to tell its sender what does fit.
func TestOversize(t *testing.T) {
	for _, c := range []struct {
		sentence string
		at       string
		sends    string
		with     func(*frame.Frame)
		is       reason.Reason
		speaker  string
		via      string
	}{
		{"a pod is told by the node", "in client", "client:4000 > vip:80", sized(3000), reason.PacketTooBig, "node", "direct client"},
		{"a pod that lets routers cut is told, too, for the rest is not here", "in client", "client:4000 > vip:80", func(f *frame.Frame) { sized(3000)(f); f.DF = false }, reason.PacketTooBig, "node", "direct client"},
		{"a backend is told by the node", "in web", "web:8080 > client:4000", sized(3000), reason.PacketTooBig, "node", "direct web"},
		{"a client outside is told by the node", "in wire", "outside:4000 > vip:80", sized(3000), reason.PacketTooBig, "node", "direct wire"},
		{"a backend in the node's own stack is told by the VIP", "out client", "web:8080 > client:4000", sized(3000), reason.PacketTooBig, "vip", "direct node"},
		{"whose source is another's is not told", "in client", "other:4000 > vip:80", sized(3000), reason.TooBig, "", ""},
		{"a message of ICMP is not answered", "in client", "client:4000 > vip:80", func(f *frame.Frame) { ping(f); f.Payload = make([]byte, 3000) }, reason.TooBig, "", ""},
		{"what has no headers that make sense is not answered", "in client", "client:4000 > vip:80", func(f *frame.Frame) { sized(3000)(f); f.Options = make([]byte, 4); f.Extensions = manyExtensions }, reason.Malformed, "", ""},
	} {
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP} {
			for _, family := range []int{4, 6} {
				if c.is == reason.Malformed && family == 4 {
					continue
				}
				w := newWorld(t, family, protocol)
				w.serve("vip", "web:8080")
				narrow("node", 1500)(w) // the trunk's MTU is that of lace0, the node's port
				w.play(0, &opens)
				w.oversize(c.sentence, &step{sends: c.sends, at: c.at, flags: ack, with: c.with, is: c.is, becomes: c.speaker, answer: true, mtu: 1500, via: c.via})
			}
		}
	}
}

var manyExtensions = func() (all []frame.Extension) {
	for range 9 {
		all = append(all, frame.Extension{Type: 60, Body: make([]byte, 6)})
	}
	return all
}()

func (w *world) oversize(sentence string, s *step) {
	w.t.Helper()
	in := w.frame(1, s)
	raw := in.Bytes()[:14+1500]
	punt := w.punt(s)
	punt.Cut = true
	b := append(make([]byte, 0, 2048), raw...)
	before := w.everything()
	r := w.pipeline.Process(w.snapshot, b, punt, int64(w.clock), nil)
	if r.Reason != s.is {
		w.t.Errorf("%s: v%d %s: reason %s, want %s", sentence, w.family, packet.ProtocolName(w.protocol), r.Reason, s.is)
		return
	}
	if len(before) != len(w.everything()) {
		w.t.Errorf("%s: flows come or go", sentence)
	}
	if r.Verdict == Drop {
		return
	}
	if via := injectNames[r.Inject] + " " + portNameOf(r.Port); via != s.via {
		w.t.Errorf("%s: delivered %s, want %s", sentence, via, s.via)
	}
	if err := w.checkOut(s, &in, raw, b[:r.Len]); err != nil {
		w.t.Errorf("%s: v%d %s: %v", sentence, w.family, packet.ProtocolName(w.protocol), err)
	}
}
