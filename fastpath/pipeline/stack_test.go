package pipeline

import (
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// stack makes the ports ask for the node's stack: all but the node's own, or those named.
func (w *world) stack(names ...string) {
	if names == nil {
		names = []string{"client", "web", "other", "wire"}
	}
	for _, name := range names {
		w.port(name, func(p *table.Port) { p.Flags |= table.PortStack })
	}
}

func (w *world) direct(names ...string) {
	for _, name := range names {
		w.port(name, func(p *table.Port) { p.Flags &^= table.PortStack })
	}
}

// stacked is a world whose ports ask for the node's stack and that serves vip.
func stacked(backends ...string) func(*world) {
	return func(w *world) {
		w.stack()
		w.serve("vip", backends...)
	}
}

// TestStackDelivery is every kind of client with every kind of backend where the ports ask
// for the node's stack: by it where it can, straight where it cannot.
func TestStackDelivery(t *testing.T) {
	straight := func(s step) step { s.ttl = -1; return s }
	cases := []struct {
		sentence        string
		client, backend string
		toBackend       step // what the stack or the backend gets
		passes          step // the answer where it comes in, left as it is; none: it is translated there
		answer          step // the answer where it is translated
	}{
		{
			"a pod and a pod on the same node",
			"client:4000", "web:8080",
			step{becomes: "client:4000 > web:8080", via: "stack client"},
			step{sends: "web:8080 > client:4000", via: "stack web"},
			step{sends: "web:8080 > client:4000", at: "out client", via: "resume client"},
		},
		{
			"a pod and a pod on another node",
			"client:4000", "remote:8080",
			step{becomes: "client:4000 > remote:8080", via: "stack client"},
			step{sends: "remote:8080 > client:4000", via: "stack wire"},
			step{sends: "remote:8080 > client:4000", at: "out client", via: "resume client"},
		},
		{
			"a pod and a backend in the node's own stack",
			"client:4000", "node:8080",
			step{becomes: "client:4000 > node:8080", via: "stack client"},
			step{},
			step{sends: "node:8080 > client:4000", at: "out client", via: "resume client"},
		},
		{
			"an outside client and a pod on the node",
			"outside:4000", "web:8080",
			step{becomes: "outside:4000 > web:8080", via: "stack wire"},
			step{sends: "web:8080 > outside:4000", via: "stack web"},
			step{sends: "web:8080 > outside:4000", at: "out wire", via: "resume wire"},
		},
		{
			"an outside client and a backend in the node's own stack",
			"outside:4000", "node:8080",
			step{becomes: "outside:4000 > node:8080", via: "stack wire"},
			step{},
			step{sends: "node:8080 > outside:4000", at: "out wire", via: "resume wire"},
		},
		{
			"an outside client and a pod on another node: straight, the stack takes no packet from its own address",
			"outside:4000", "remote:8080",
			straight(step{becomes: "node:* > remote:8080", via: "direct wire"}),
			step{},
			straight(step{sends: "remote:8080 > node:61234", via: "direct wire"}),
		},
		{
			"a pod that is its own backend: straight, the stack takes no packet from a VIP",
			"web:4000", "web:8080",
			straight(step{becomes: "vip:4000 > web:8080", via: "direct web"}),
			step{},
			straight(step{sends: "web:8080 > vip:4000", via: "direct web"}),
		},
		{
			"the node and a pod on it: straight, its stack would send the packet back to lace0",
			"node:4000", "web:8080",
			step{becomes: "node:4000 > web:8080", via: "direct web"},
			step{},
			step{sends: "web:8080 > node:4000", via: "direct node"},
		},
		{
			"the node and a backend in its own stack",
			"node:4000", "node:8080",
			step{becomes: "vip:4000 > node:8080", via: "direct node"},
			step{},
			step{sends: "node:8080 > vip:4000", via: "direct node"},
		},
	}
	all := []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP}
	var scenarios []scenario
	for _, c := range cases {
		first, answer := c.toBackend, c.answer
		first.sends, first.is = c.client+" > vip:80", reason.NewFlow
		answer.becomes, answer.is, answer.flags = "vip:80 > "+c.client, reason.Reply, synAck
		again := first
		again.is = reason.Established
		list := []step{first}
		if c.passes.sends != "" {
			c.passes.becomes, c.passes.is, c.passes.flags = "=", reason.NotClaimed, synAck
			list = append(list, c.passes)
		}
		given := func(w *world) {
			w.contents.Settings.SourcePortFirst, w.contents.Settings.SourcePortLast = 61234, 61234
			stacked(c.backend)(w)
		}
		scenarios = append(scenarios, scenario{sentence: c.sentence, over: all, given: given, steps: append(list, answer, again)})
	}
	play(t, scenarios)
}

// TestStackChoice: who asks for the stack, what it looks after itself, and what becomes of
// flows when something changes.
func TestStackChoice(t *testing.T) {
	opens := step{sends: "client:4000 > vip:80", is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "stack client"}
	goesOn := step{sends: "client:4000 > vip:80", is: reason.Established, flags: ack, becomes: "client:4000 > web:8080", via: "stack client"}
	answers := step{sends: "web:8080 > client:4000", at: "out client", flags: synAck, is: reason.Reply, becomes: "vip:80 > client:4000", via: "resume client"}
	straight := func(s step, via string) step { s.at, s.via, s.ttl = "", via, -1; return s }
	lastHop := func(s step) step { s.with = func(f *frame.Frame) { f.TTL = 1 }; return s }
	toFar := step{sends: "client:4000 > vip:80", is: reason.NewFlow, becomes: "client:4000 > remote:8080", via: "stack client"}
	play(t, []scenario{
		{
			sentence: "the client's port asks for it",
			given:    func(w *world) { w.stack("client"); w.serve("vip", "web:8080") },
			steps:    []step{opens, answers},
		},
		{
			sentence: "the backend's port asks for it",
			given:    func(w *world) { w.stack("web"); w.serve("vip", "web:8080") },
			steps:    []step{opens, answers},
		},
		{
			sentence: "neither asks for it",
			given:    func(w *world) { w.stack("other", "wire"); w.serve("vip", "web:8080") },
			steps:    []step{straight(opens, "direct web"), straight(answers, "direct client")},
		},
		{
			sentence: "a flow that began in the stack stays there when the setting changes",
			given:    stacked("web:8080"),
			steps:    []step{opens, {then: func(w *world) { w.direct("client", "web", "other", "wire") }}, answers, goesOn},
		},
		{
			sentence: "a flow that began straight stays so when the setting changes",
			given:    serving("vip", "web:8080"),
			steps: []step{straight(opens, "direct web"), {then: func(w *world) { w.stack() }},
				straight(answers, "direct client"), straight(goesOn, "direct web")},
		},
		{
			sentence: "the time to live is the stack's affair",
			given:    stacked("web:8080"),
			steps:    []step{lastHop(opens), lastHop(answers), lastHop(goesOn)},
		},
		{
			sentence: "and so is the length",
			given: func(w *world) {
				stacked("web:8080")(w)
				w.port("web", func(p *table.Port) { p.MTU = 1280 })
			},
			steps: []step{opens, answers, func() step {
				s := goesOn
				s.with = func(f *frame.Frame) { f.Payload = append(f.Payload, make([]byte, 1300)...) }
				return s
			}()},
		},
		{
			sentence: "where no port leads to the backend, the stack may know",
			given: func(w *world) {
				w.contents.Routes = nil
				stacked("remote:8080")(w)
			},
			steps: []step{toFar, func() step { s := answers; s.sends = "remote:8080 > client:4000"; return s }()},
		},
		{
			sentence: "a backend that moves is found by the stack, the flow goes on",
			given:    stacked("web:8080"),
			steps: []step{opens, answers, {then: func(w *world) {
				w.moveTo("web", "other")
				w.port("web", func(p *table.Port) { p.Generation++ })
			}}, goesOn, answers},
		},
		{
			sentence: "a client whose port is another by now gets its replies there",
			given:    stacked("web:8080"),
			steps: []step{opens, answers, {then: func(w *world) {
				w.moveTo("client", "other")
				w.port("client", func(p *table.Port) { p.Generation++ })
			}}, func() step { s := answers; s.at, s.via = "out other", "resume other"; return s }(),
				func() step { s := goesOn; s.at, s.via = "in other", "stack other"; return s }()},
		},
		{
			sentence: "an outside client whose replies leave by a device that is no port: straight",
			given: func(w *world) {
				w.route("172.30.0.100/32", "node")
				w.route("fd30::100/128", "node")
				stacked("web:8080")(w)
			},
			steps: []step{{sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1}},
		},
		{
			sentence: "an outside client to whom no route leads is taken to be behind the port where it came in",
			given:    func(w *world) { w.contents.Routes = nil; stacked("web:8080")(w) },
			steps: []step{{sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "stack wire"},
				{sends: "web:8080 > outside:4000", at: "out wire", flags: synAck, is: reason.Reply, becomes: "vip:80 > outside:4000", via: "resume wire"}},
		},
		{
			sentence: "a flow that is re-picked is routed by the stack again",
			over:     onlyUDP,
			given:    stacked("web:8080"),
			steps: []step{opens, {then: func(w *world) { w.stopServing("web:8080"); w.serve("vip", "other:8080") }},
				{sends: "client:4000 > vip:80", is: reason.Repicked, becomes: "client:4000 > other:8080", via: "stack client"},
				{sends: "other:8080 > client:4000", at: "out client", is: reason.Reply, becomes: "vip:80 > client:4000", via: "resume client"}},
		},
		{
			sentence: "a flow whose Service is gone ends",
			given:    stacked("web:8080"),
			steps:    []step{opens, answers, {then: func(w *world) { delete(w.services, "vip"); w.publish() }}, func() step { s := answers; s.is, s.becomes, s.via = reason.FlowEnded, "", ""; return s }()},
		},
	})
}

// TestStackErrors: errors about packets of a flow that the stack routes take the flow's way:
// those that travel with replies pass where they come in and are translated where they leave.
func TestStackErrors(t *testing.T) {
	opened := []step{{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "stack client"}}
	about := complaint{
		given: stacked("web:8080"), flow: opened, about: "client:4000 > web:8080", to: "client",
		types4: errors4, types6: errors6, at: "out client",
		is: reason.ICMPTranslated, becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "resume client",
	}
	byBackend, byRouter, byNode, passing := about, about, about, about
	byBackend.sentence, byBackend.from, byBackend.becomesFrom = "what the backend says, where it leaves for the client", "web", "vip"
	byRouter.sentence, byRouter.from, byRouter.becomesFrom = "what a router says, where it leaves for the client", "router", "router"
	byNode.sentence, byNode.from, byNode.becomesFrom = "what the node's own stack says, where it leaves for the client", "node", "node"
	passing.sentence, passing.from, passing.at = "what the backend says, where it comes in", "web", ""
	passing.is, passing.via, passing.unchangedPassed = reason.NotClaimed, "stack web", true
	byClient := complaint{
		sentence: "what the client says of a reply is translated where it comes in",
		given:    stacked("web:8080"), flow: opened, from: "client", to: "vip", about: "vip:80 > client:4000",
		is: reason.ICMPTranslated, becomesFrom: "client", becomesTo: "web", aboutThen: "web:8080 > client:4000", via: "stack client",
	}
	for _, c := range []complaint{byBackend, byRouter, byNode, passing, byClient} {
		c.play(t)
	}
}
