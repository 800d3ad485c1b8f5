package pipeline

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// The usual steps of a connection from client:4000 to web:8080 through vip:80.
var (
	opens     = step{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1}
	accepts   = step{sends: "web:8080 > client:4000", flags: synAck, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1}
	speaks    = step{sends: "client:4000 > vip:80", flags: ack, is: reason.Established, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1}
	answers   = step{sends: "web:8080 > client:4000", flags: ack, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1}
	finishes  = step{sends: "client:4000 > vip:80", flags: fin, is: reason.Established, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1}
	ends      = step{sends: "web:8080 > client:4000", flags: fin, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1}
	resets    = step{sends: "web:8080 > client:4000", flags: rst, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1}
	connected = []step{opens, accepts, speaks}
)

// after is a step that begins with a change.
func after(change func(*world), s step) step { s.then = change; return s }

// toOther is a step that leads to other:8080 instead of web:8080.
func toOther(s step, is reason.Reason) step {
	s.is, s.becomes, s.via = is, "client:4000 > other:8080", "direct other"
	return s
}

// later lets time pass.
func later(d time.Duration) func(*world) { return func(w *world) { w.clock += d } }

func steps(all ...any) (out []step) {
	for _, s := range all {
		switch s := s.(type) {
		case step:
			out = append(out, s)
		case []step:
			out = append(out, s...)
		}
	}
	return out
}

// TestConnectionKeepsItsBackend: a flow outlives changes that do not concern it.
func TestConnectionKeepsItsBackend(t *testing.T) {
	play(t, []scenario{
		{
			sentence: "a flow keeps its backend when others come and go",
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(serving("vip", "other:8080", "web:8080", "remote:8080"), speaks), answers),
		},
		{
			sentence: "a flow keeps its backend when that leaves the Service but still serves (terminating)",
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(func(w *world) { w.serve("vip", "other:8080"); w.backend("web:8080") }, speaks), answers),
		},
		{
			sentence: "TCP stays with a backend that stops serving until it ends",
			over:     onlyTCP,
			given:    serving("vip", "web:8080", "web:8080"),
			steps: steps(connected, after(func(w *world) { w.serve("vip", "other:8080"); w.stopServing("web:8080") }, speaks),
				answers, speaks, finishes, ends),
		},
		{
			sentence: "TCP stays with a backend that is removed until it ends",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(removed("web:8080", "other:8080"), speaks), answers, speaks, finishes, ends),
		},
		{
			sentence: "SCTP stays with a backend that is removed",
			over:     onlySCTP,
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(removed("web:8080", "other:8080"), speaks), answers),
		},
		{
			sentence: "a frontend that is looked at again keeps its flows",
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(bumped("vip"), speaks), answers),
		},
		{
			sentence: "TCP lives on with a backend when its Service has none left",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(removed("web:8080"), speaks), answers),
		},
	})
}

// removed takes a backend away and leaves the Service with others.
func removed(backend string, others ...string) func(*world) {
	return func(w *world) {
		w.serve("vip", others...)
		w.remove(backend)
	}
}

// bumped makes every flow of a frontend be looked at again.
func bumped(vip string) func(*world) {
	return func(w *world) {
		w.services[vip].frontend.Generation++
		w.publish()
	}
}

// TestRepick: a flow that says nothing to its backend any more gets another one.
func TestRepick(t *testing.T) {
	again := toOther(opens, reason.Repicked)
	onward := toOther(speaks, reason.Established)
	play(t, []scenario{
		{
			sentence: "UDP to a backend that stops serving is given another at once",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected, after(func(w *world) { w.serve("vip", "other:8080"); w.stopServing("web:8080") }, again), onward,
				step{sends: "other:8080 > client:4000", is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1}),
		},
		{
			sentence: "UDP to a backend that is removed is given another at once",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(removed("web:8080", "other:8080"), again), onward),
		},
		{
			sentence: "UDP to a backend that left this Service, though it serves another one, is given another",
			over:     onlyUDP,
			given:    func(w *world) { w.serve("vip", "web:8080"); w.serve("vip2", "web:8080") },
			steps:    steps(connected, after(func(w *world) { w.serve("vip", "other:8080"); bumped("vip")(w) }, again), onward),
		},
		{
			sentence: "so is one to a backend whose own record shows that it left some Service",
			over:     onlyUDP,
			given:    func(w *world) { w.serve("vip", "web:8080"); w.serve("vip2", "web:8080") },
			steps: steps(connected, after(func(w *world) {
				w.backend("web:8080").Generation++
				w.serve("vip", "other:8080")
			}, again), onward),
		},
		{
			sentence: "UDP stays with a backend that left another Service",
			over:     onlyUDP,
			given:    func(w *world) { w.serve("vip", "web:8080"); w.serve("vip2", "web:8080") },
			steps: steps(connected, after(func(w *world) {
				w.backend("web:8080").Generation++
				w.serve("vip2", "other:8080")
			}, speaks), answers, speaks),
		},
		{
			sentence: "a late UDP reply of the former backend is not Lace's any more",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected, after(removed("web:8080", "other:8080"), again),
				step{sends: "web:8080 > client:4000", is: reason.NotClaimed, becomes: "=", via: "stack web"}),
		},
		{
			sentence: "UDP without a backend left is refused and its flow ends; the next backend gets it as a new one",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected,
				step{then: removed("web:8080"), sends: "client:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"},
				step{sends: "client:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"},
				after(serving("vip", "other:8080"), toOther(opens, reason.NewFlow))),
		},
		{
			sentence: "UDP under policy Local without a backend left on the node is dropped and its flow ends; the next backend gets it as a new one",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps: []step{
				{sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1},
				{then: func(w *world) {
					w.remove("web:8080")
					w.serveApart("vip", []string{"remote:8080"}, nil)
					w.services["vip"].frontend.Outside.Empty = table.Drop
					w.publish()
				}, sends: "outside:4000 > vip:80", is: reason.NoLocalEndpoint},
				{then: serving("vip", "other:8080"), sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "outside:4000 > other:8080", via: "direct other", ttl: -1},
			},
		},
		{
			sentence: "a SYN sent again to a backend that is removed is given another",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps:    steps(opens, after(removed("web:8080", "other:8080"), again), onward),
		},
		{
			sentence: "a SYN sent again to a backend that stopped serving is given another",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps:    steps(opens, after(func(w *world) { w.serve("vip", "other:8080"); w.stopServing("web:8080") }, again), onward),
		},
		{
			sentence: "a SYN sent again to a backend that serves stays there",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps: steps(opens, after(serving("vip", "other:8080", "web:8080"),
				step{sends: opens.sends, flags: syn, is: reason.Established, becomes: opens.becomes, via: opens.via, ttl: -1})),
		},
		{
			sentence: "an outside client is given another backend on another node, by a port of the node's",
			over:     onlyUDP,
			given:    serving("vip", "remote:8080"),
			steps: []step{
				{sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
				{then: removed("remote:8080", "remote2:8080"), sends: "outside:4000 > vip:80", is: reason.Repicked,
					becomes: "node:* > remote2:8080", via: "direct wire", ttl: -1},
			},
		},
		{
			sentence: "a flow that would clash with another's on the way to its new backend gets another source port",
			over:     onlyUDP,
			given:    func(w *world) { w.serve("vip", "web:8080"); w.serve("vip2", "other:8080") },
			steps: steps(opens,
				step{sends: "client:4000 > vip2:80", is: reason.NewFlow, becomes: "client:4000 > other:8080", via: "direct other", ttl: -1},
				step{then: removed("web:8080", "other:8080"), sends: "client:4000 > vip:80", is: reason.Repicked,
					becomes: "client:* > other:8080", via: "direct other", ttl: -1}),
		},
	})
}

// TestEndOfAFlow: how flows end, and what is left of them.
func TestEndOfAFlow(t *testing.T) {
	reopens := toOther(opens, reason.NewFlow)
	play(t, []scenario{
		{
			sentence: "a SYN after both FINs opens a new flow with a backend of its own",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, finishes, ends, after(serving("vip", "other:8080"), reopens)),
		},
		{
			sentence: "a SYN after one FIN keeps the backend",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected, finishes,
				step{sends: opens.sends, flags: syn, is: reason.Established, becomes: opens.becomes, via: opens.via, ttl: -1}),
		},
		{
			sentence: "a SYN after a reset keeps the backend, for anybody can forge a reset",
			over:     onlyTCP,
			given:    serving("vip", "web:8080", "web:8080"),
			steps: steps(connected, resets, after(serving("vip", "other:8080", "web:8080"),
				step{sends: opens.sends, flags: syn, is: reason.Established, becomes: opens.becomes, via: opens.via, ttl: -1}),
				accepts, speaks, answers),
		},
		{
			sentence: "a late packet of a closed flow is still translated and opens nothing",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, finishes, ends, after(serving("vip", "other:8080"), speaks), answers),
		},
		{
			sentence: "a late packet of a closed flow is reset once the tombstone is gone",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected, finishes, ends,
				step{then: later(2 * time.Minute), sends: "client:4000 > vip:80", flags: ack, is: reason.NoFlow, answer: true, via: "direct client"}),
		},
		{
			sentence: "an established connection outlives hours of silence",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(later(20*time.Hour), speaks), after(later(20*time.Hour), answers)),
		},
		{
			sentence: "an idle UDP flow ends, and its next packet chooses anew",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected, after(later(time.Minute), speaks),
				after(func(w *world) { w.serve("vip", "other:8080"); later(5 * time.Minute)(w) }, reopens)),
		},
		{
			sentence: "packets of one direction keep both alive",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected, answers, after(later(100*time.Second), answers), after(later(100*time.Second), answers),
				after(later(100*time.Second), speaks)),
		},
		{
			sentence: "when the frontend is deleted its flows end, and what follows is nobody's",
			given:    serving("vip", "web:8080"),
			steps: steps(connected,
				step{then: deleted("vip"), sends: "client:4000 > vip:80", is: reason.FlowEnded},
				step{sends: "client:4000 > vip:80", is: reason.NotClaimed, becomes: "=", via: "stack client"},
				step{sends: "web:8080 > client:4000", is: reason.NotClaimed, becomes: "=", via: "stack web"}),
		},
		{
			sentence: "when the frontend is deleted its replies end as well",
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, step{then: deleted("vip"), sends: "web:8080 > client:4000", is: reason.FlowEnded}),
		},
		{
			sentence: "a frontend's id in the hands of another frontend does not keep the old flows",
			given:    serving("vip", "web:8080"),
			steps: steps(connected, step{then: func(w *world) {
				id := w.services["vip"].frontend.ID
				delete(w.services, "vip")
				w.serve("vip2", "web:8080")
				w.services["vip2"].frontend.ID, w.services["vip2"].frontend.Generation = id, 2
				w.publish()
			}, sends: "client:4000 > vip:80", is: reason.FlowEnded}),
		},
		{
			sentence: "a backend's id in the hands of another backend does not keep UDP with the old one",
			over:     onlyUDP,
			given:    serving("vip", "web:8080"),
			steps: steps(connected, after(func(w *world) {
				id := w.backend("web:8080").ID
				delete(w.backends, "web:8080")
				b := w.backend("other:8080")
				b.ID, b.Generation = id, 2
				w.serve("vip", "other:8080")
			}, toOther(speaks, reason.Repicked))),
		},
	})
}

func deleted(vip string) func(*world) {
	return func(w *world) {
		delete(w.services, vip)
		w.publish()
	}
}

// TestTargets: a flow follows its ends when they move.
func TestTargets(t *testing.T) {
	play(t, []scenario{
		{
			sentence: "a backend that appears behind another port is found there",
			given:    serving("vip", "web:8080"),
			steps: steps(connected,
				step{then: func(w *world) {
					w.port("web", func(p *table.Port) { p.Generation++ })
					w.moveTo("web", "other")
				}, sends: speaks.sends, is: reason.Established, becomes: speaks.becomes, via: "direct other", ttl: -1, flags: ack}),
		},
		{
			sentence: "a client that appears behind another port gets its replies there",
			given:    serving("vip", "web:8080"),
			steps: steps(connected,
				step{then: func(w *world) {
					w.port("client", func(p *table.Port) { p.Generation++ })
					w.moveTo("client", "other")
				}, sends: answers.sends, is: reason.Reply, becomes: answers.becomes, via: "direct other", ttl: -1, flags: ack}),
		},
		{
			sentence: "a port with another device or next hop serves its flows as before",
			given:    serving("vip", "web:8080"),
			steps:    steps(connected, after(func(w *world) { w.port("web", func(p *table.Port) { p.Generation++ }) }, speaks), speaks),
		},
		{
			sentence: "a backend that nothing leads to any more",
			given:    serving("vip", "remote:8080"),
			steps: []step{
				{sends: "client:4000 > vip:80", is: reason.NewFlow, becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1},
				{then: func(w *world) {
					w.contents.Routes = nil
					w.port("wire", func(p *table.Port) { p.Generation++ })
				}, sends: "client:4000 > vip:80", is: reason.NoTarget},
				{sends: "client:4001 > vip:80", flags: syn, is: reason.NoTarget},
			},
		},
		{
			sentence: "an outside client of a remote backend, where the node has no address of the family",
			given: func(w *world) {
				w.contents.Settings.NodeAddr4, w.contents.Settings.NodeAddr6 = packet.Addr{}, packet.Addr{}
				w.serve("vip", "remote:8080")
			},
			steps: []step{{sends: "outside:4000 > vip:80", is: reason.NoTarget}},
		},
	})
}

// TestSourcePorts: reply tuples are kept apart by another source port.
func TestSourcePorts(t *testing.T) {
	one := func(w *world) {
		w.contents.Settings.SourcePortFirst, w.contents.Settings.SourcePortLast = 61234, 61234
		w.publish()
	}
	play(t, []scenario{
		{
			sentence: "one client port through two VIPs to one backend: the second flow gets another source port, and both work",
			given:    func(w *world) { one(w); w.serve("vip", "web:8080"); w.serve("vip2", "web:8080") },
			steps: steps(opens,
				step{sends: "client:4000 > vip2:80", flags: syn, is: reason.NewFlow, becomes: "client:61234 > web:8080", via: "direct web", ttl: -1},
				accepts,
				step{sends: "web:8080 > client:61234", flags: synAck, is: reason.Reply, becomes: "vip2:80 > client:4000", via: "direct client", ttl: -1},
				step{sends: "client:4000 > vip2:80", is: reason.Established, becomes: "client:61234 > web:8080", via: "direct web", ttl: -1}),
		},
		{
			sentence: "when every source port towards a backend is taken, the next flow is dropped and the others live",
			given:    func(w *world) { one(w); w.serve("vip", "remote:8080"); w.serve("vip2", "remote2:8080") },
			steps: []step{
				{sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "node:61234 > remote:8080", via: "direct wire", ttl: -1},
				{sends: "outside:4001 > vip:80", flags: syn, is: reason.SourcePortsUsedUp},
				{sends: "outside:4001 > vip2:80", flags: syn, is: reason.NewFlow, becomes: "node:61234 > remote2:8080", via: "direct wire", ttl: -1},
				{sends: "outside:4000 > vip:80", is: reason.Established, becomes: "node:61234 > remote:8080", via: "direct wire", ttl: -1},
			},
		},
		{
			sentence: "a closed flow's source port is free for the next",
			over:     onlyTCP,
			given:    func(w *world) { one(w); w.serve("vip", "remote:8080") },
			steps: []step{
				{sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "node:61234 > remote:8080", via: "direct wire", ttl: -1},
				{sends: "remote:8080 > node:61234", flags: fin, is: reason.Reply, becomes: "vip:80 > outside:4000", via: "direct wire", ttl: -1},
				{sends: "outside:4000 > vip:80", flags: fin, is: reason.Established, becomes: "node:61234 > remote:8080", via: "direct wire", ttl: -1},
				{sends: "outside:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "node:61234 > remote:8080", via: "direct wire", ttl: -1},
			},
		},
	})
}
