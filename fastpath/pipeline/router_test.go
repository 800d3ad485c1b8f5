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
