package pipeline

import (
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

var all = []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP}

// nodePort makes node:30080 a frontend of that one port.
func nodePort(inside, outside []string) func(*world) {
	return func(w *world) {
		w.serveApart("node", inside, outside)
		f := &w.services["node"].frontend
		f.Port, f.Flags = 30080, table.Narrow
		w.publish()
	}
}

func backends(names ...string) []string { return names }

// TestNodePort: one port of the node's address, and nothing else of it.
func TestNodePort(t *testing.T) {
	play(t, []scenario{
		{
			sentence: "an outside client reaches a pod of this node and keeps its address",
			over:     all,
			given:    nodePort(backends("web:8080"), backends("web:8080")),
			steps: []step{
				{sends: "outside:4000 > node:30080", is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1},
				{sends: "web:8080 > outside:4000", flags: synAck, is: reason.Reply, becomes: "node:30080 > outside:4000", via: "direct wire", ttl: -1},
			},
		},
		{
			sentence: "an outside client whose backend is on another node is seen as this node, by a port of the node's range",
			over:     all,
			given:    nodePort(backends("remote:8080"), backends("remote:8080")),
			steps: []step{
				{sends: "outside:4000 > node:30080", is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
			},
		},
		{
			sentence: "so is another node's pod, whose answer would not come back by this node",
			over:     all,
			given:    nodePort(backends("remote:8080"), backends("remote:8080")),
			steps: []step{
				{sends: "remote2:4000 > node:30080", is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
			},
		},
		{
			sentence: "a pod of this node keeps its address towards pods here and elsewhere",
			over:     all,
			given:    nodePort(backends("remote:8080"), nil),
			steps: []step{
				{sends: "client:4000 > node:30080", is: reason.NewFlow, becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1},
				{sends: "remote:8080 > client:4000", flags: synAck, is: reason.Reply, becomes: "node:30080 > client:4000", via: "direct client", ttl: -1},
			},
		},
		{
			sentence: "a pod that is its own backend is seen as the node, by a port that the node's sockets do not use",
			given:    nodePort(backends("web:8080"), backends("web:8080")),
			steps: []step{
				{sends: "web:4000 > node:30080", is: reason.NewFlow, becomes: "node:* > web:8080", via: "direct web", ttl: -1},
			},
		},
		{
			sentence: "a backend in this node's own stack answers pods and outside",
			over:     all,
			given:    nodePort(backends("node:8080"), backends("node:8080")),
			steps: []step{
				{sends: "client:4000 > node:30080", flags: syn, is: reason.NewFlow, becomes: "client:4000 > node:8080", via: "stack client"},
				{sends: "node:8080 > client:4000", at: "out client", flags: synAck, is: reason.Reply, becomes: "node:30080 > client:4000", via: "direct client"},
				{sends: "outside:4000 > node:30080", flags: syn, is: reason.NewFlow, becomes: "outside:4000 > node:8080", via: "stack wire"},
				{sends: "node:8080 > outside:4000", at: "out wire", flags: synAck, is: reason.Reply, becomes: "node:30080 > outside:4000", via: "direct wire"},
			},
		},
		{
			sentence: "other ports of the node are left to the node",
			over:     all,
			given:    nodePort(backends("web:8080"), backends("web:8080")),
			steps: []step{
				{sends: "outside:4000 > node:22", is: reason.NotClaimed, becomes: "=", via: "stack wire"},
				{sends: "client:4000 > node:30081", is: reason.NotClaimed, becomes: "=", via: "stack client"},
			},
		},
		{
			sentence: "the same number of another protocol is left to the node",
			over:     onlyTCP,
			given: func(w *world) {
				nodePort(backends("web:8080"), backends("web:8080"))(w)
				w.protocol = packet.ProtocolUDP
			},
			steps: []step{{sends: "outside:4000 > node:30080", is: reason.NotClaimed, becomes: "=", via: "stack wire"}},
		},
		{
			sentence: "ping of the node is left to the node",
			over:     onlyUDP,
			given:    nodePort(backends("web:8080"), backends("web:8080")),
			steps: []step{{sends: "outside:4000 > node:30080", is: reason.NotClaimed, becomes: "=", via: "stack wire", with: func(f *frame.Frame) {
				f.Protocol, f.ICMPType = packet.ProtocolICMP, 8
				if !f.Src.Addr().Is4() {
					f.Protocol, f.ICMPType = packet.ProtocolICMPv6, 128
				}
			}}},
		},
		{
			sentence: "without any endpoint clients inside and outside are refused",
			given:    nodePort(nil, nil),
			steps: []step{
				{sends: "client:4000 > node:30080", flags: syn, is: reason.NoEndpoints, answer: true, via: "direct client"},
				{sends: "outside:4000 > node:30080", flags: syn, is: reason.NoEndpoints, answer: true, via: "direct wire"},
			},
		},
	})
}

// TestSourcePortIsNoNodePort: of a range of two ports, one of which is a node port, the other
// is used.
func TestSourcePortIsNoNodePort(t *testing.T) {
	play(t, []scenario{{
		sentence: "a source port is never a node port",
		over:     all,
		given: func(w *world) {
			nodePort(backends("remote:8080"), backends("remote:8080"))(w)
			w.services["node"].frontend.Port = 61001
			w.contents.Settings.SourcePortFirst, w.contents.Settings.SourcePortLast = 61000, 61002
			w.publish()
		},
		steps: []step{
			{sends: "outside:4000 > node:61001", flags: syn, is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
			{sends: "outside:4001 > node:61001", flags: syn, is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
			{sends: "outside:4002 > node:61001", flags: syn, is: reason.SourcePortsUsedUp},
		},
	}})
}

// TestExternalPolicy: Local governs clients outside; inside the cluster it is Cluster.
func TestExternalPolicy(t *testing.T) {
	local := func(vip string, inside []string) func(*world) {
		return func(w *world) {
			w.serveApart(vip, inside, nil)
			w.services[vip].frontend.Outside.Empty = table.Drop
			w.publish()
		}
	}
	play(t, []scenario{
		{
			sentence: "Local without a local endpoint drops clients outside",
			over:     all,
			given:    local("vip", backends("remote:8080")),
			steps:    []step{{sends: "outside:4000 > vip:80", is: reason.NoLocalEndpoint}},
		},
		{
			sentence: "and serves pods of this node from anywhere",
			over:     all,
			given:    local("vip", backends("remote:8080")),
			steps:    []step{{sends: "client:4000 > vip:80", is: reason.NewFlow, becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1}},
		},
		{
			sentence: "and the node itself",
			over:     all,
			given:    local("vip", backends("remote:8080")),
			steps:    []step{{sends: "node:4000 > vip:80", is: reason.NewFlow, becomes: "node:4000 > remote:8080", via: "direct wire"}},
		},
		{
			sentence: "Local with a local endpoint keeps outside clients' address",
			over:     all,
			given:    func(w *world) { w.serveApart("vip", backends("remote:8080"), backends("web:8080")) },
			steps:    []step{{sends: "outside:4000 > vip:80", is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1}},
		},
		{
			sentence: "a node port of this node under Local drops another node's pod",
			over:     all,
			given: func(w *world) {
				nodePort(backends("remote:8080"), nil)(w)
				w.services["node"].frontend.Outside.Empty = table.Drop
				w.publish()
			},
			steps: []step{{sends: "remote2:4000 > node:30080", is: reason.NoLocalEndpoint}},
		},
		{
			sentence: "a change to Local leaves connections where they are, and drops new ones",
			over:     onlyTCP,
			given:    serving("vip", "remote:8080"),
			steps: []step{
				{sends: "outside:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
				{then: local("vip", backends("remote:8080")), sends: "outside:4000 > vip:80", flags: ack, is: reason.Established, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
				{sends: "outside:4001 > vip:80", flags: syn, is: reason.NoLocalEndpoint},
			},
		},
	})
}

// TestSourceRanges: who may call, whether inside the cluster or outside.
func TestSourceRanges(t *testing.T) {
	restricted := func(names ...string) func(*world) {
		return func(w *world) {
			w.serve("vip", "web:8080")
			s := w.services["vip"]
			s.sources = nil
			for _, n := range names { // in the order of their addresses
				a := packet.AddrFrom(w.addr(n))
				s.sources = append(s.sources, table.Range{First: a, Last: a})
			}
			s.frontend.Flags |= table.Restricted
			s.frontend.Generation++
			w.publish()
		}
	}
	allowed := step{sends: "outside:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1}
	onward := step{sends: "outside:4000 > vip:80", flags: ack, is: reason.Established, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1}
	play(t, []scenario{
		{
			sentence: "a client in a range is served, others are dropped wherever they are",
			over:     all,
			given:    restricted("outside"),
			steps: []step{
				allowed,
				{sends: "client:4000 > vip:80", flags: syn, is: reason.SourceNotAllowed},
				{sends: "node:4000 > vip:80", flags: syn, is: reason.SourceNotAllowed},
				{sends: "remote:4000 > vip:80", flags: syn, is: reason.SourceNotAllowed},
			},
		},
		{
			sentence: "pods and the node are served when a range holds them",
			over:     all,
			given:    restricted("client", "node"),
			steps: []step{
				{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1},
				{sends: "node:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "node:4000 > web:8080", via: "direct web"},
				{sends: "outside:4000 > vip:80", flags: syn, is: reason.SourceNotAllowed},
			},
		},
		{
			sentence: "a stray segment of a client that is not admitted gets no answer",
			over:     onlyTCP,
			given:    restricted("client"),
			steps:    []step{{sends: "outside:4000 > vip:80", flags: ack, is: reason.SourceNotAllowed}},
		},
		{
			sentence: "without any endpoint everybody is refused, admitted or not",
			given: func(w *world) {
				restricted("client")(w)
				w.serve("vip")
			},
			steps: []step{{sends: "outside:4000 > vip:80", flags: syn, is: reason.NoEndpoints, answer: true, via: "direct wire"}},
		},
		{
			sentence: "a connection outlives that its client is excluded, and a new one does not begin",
			over:     onlyTCP,
			given:    restricted("outside"),
			steps: []step{allowed, after(restricted("client"), onward),
				{sends: "outside:4001 > vip:80", flags: syn, is: reason.SourceNotAllowed}},
		},
		{
			sentence: "datagrams of a client that is excluded end at once, and go on when it is admitted again",
			over:     onlyUDP,
			given:    restricted("outside"),
			steps: []step{allowed,
				{then: restricted("client"), sends: "outside:4000 > vip:80", is: reason.SourceNotAllowed},
				{sends: "outside:4000 > vip:80", is: reason.SourceNotAllowed},
				after(restricted("outside"), allowed)},
		},
		{
			sentence: "datagrams of a client that stays admitted keep their backend",
			over:     onlyUDP,
			given:    restricted("outside"),
			steps:    []step{allowed, after(restricted("client", "outside"), onward)},
		},
	})
}

// TestKeepSet: who may keep the flows of a frontend is told by it, whatever else happens to
// the backend.
func TestKeepSet(t *testing.T) {
	draining := func(w *world) {
		w.backend("web:8080").Generation++ // it left another Service
		w.serve("vip", "other:8080")
		w.services["vip"].keep = []string{"web:8080"}
		w.publish()
	}
	play(t, []scenario{
		{
			sentence: "UDP stays with a backend that drains here and left another Service",
			over:     onlyUDP,
			given:    func(w *world) { w.serve("vip", "web:8080"); w.serve("vip2", "web:8080") },
			steps:    steps(connected, after(draining, speaks), answers),
		},
		{
			sentence: "and is given another when it left this one",
			over:     onlyUDP,
			given:    func(w *world) { w.serve("vip", "web:8080"); w.serve("vip2", "web:8080") },
			steps: steps(connected, after(func(w *world) {
				w.backend("web:8080").Generation++
				w.serve("vip", "other:8080")
				w.services["vip2"].keep = []string{"web:8080"}
				w.publish()
			}, toOther(opens, reason.Repicked))),
		},
	})
}

// TestEveryBackendIsAsLikely: χ² over 20,000 choices, for clients inside and outside. The
// generator is seeded, so that the outcome is the same each time.
func TestEveryBackendIsAsLikely(t *testing.T) {
	const choices, degrees = 20_000, 3
	w := newWorld(t, 4, packet.ProtocolTCP)
	four := backends("web:8080", "other:8080", "remote:8080", "remote2:8080")
	nodePort(four, four)(w)
	f := w.snapshot.FrontendByID(w.services["node"].frontend.ID)
	for _, c := range []struct {
		name string
		set  table.Set
	}{{"inside", f.Inside}, {"outside", f.Outside}} {
		ids, counts := w.snapshot.Set(c.set), map[uint32]int{}
		for range choices {
			id, _ := w.pipeline.pick(f, ids)
			counts[id]++
		}
		chi, want := 0.0, float64(choices)/float64(degrees+1)
		for _, id := range ids {
			d := float64(counts[id]) - want
			chi += d * d / want
		}
		if limit := 16.27; chi > limit || len(counts) != degrees+1 { // exceeded once in a thousand
			t.Errorf("%s: χ² %.2f of %v, want below %.2f", c.name, chi, counts, limit)
		}
	}
}
