package pipeline

import (
	"fmt"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// laneOn and laneOff serve vip with and without the lane.
func laneOn(backends ...string) func(*world)  { return laneIs(1, backends) }
func laneOff(backends ...string) func(*world) { return laneIs(0, backends) }

func laneIs(on uint8, backends []string) func(*world) {
	return func(w *world) {
		w.contents.Settings.Lane = on
		w.serve("vip", backends...)
	}
}

// drained ends the worker's round.
func drained(w *world) { w.pipeline.Settle(true, int64(w.clock)) }

// flowOf is the flow that a packet, written like a step's, belongs to.
func (w *world) flowOf(sends string) (f conntrack.Flow) {
	w.t.Helper()
	var from, to string
	if _, err := fmt.Sscanf(sends, "%s > %s", &from, &to); err != nil {
		w.t.Fatalf("%q: %v", sends, err)
	}
	src, dst := w.endpoint(from), w.endpoint(to)
	t := conntrack.Tuple{
		Src: packet.AddrFrom(src.Addr()), Dst: packet.AddrFrom(dst.Addr()),
		SrcPort: src.Port(), DstPort: dst.Port(), Protocol: w.protocol,
	}
	if !w.flows.Lookup(&t, &f) {
		w.t.Fatalf("no flow has %s", sends)
	}
	return f
}

// moves checks who moves the packets of the usual flow to a backend, in both directions.
func moves(want conntrack.Mode, backend string) step { return moveAs(want, want, backend) }

// onlyBack checks that the kernel moves the replies of a backend, and Go what they answer.
func onlyBack(backend string) step { return moveAs(conntrack.ModeGo, conntrack.ModeLane, backend) }

func moveAs(there, back conntrack.Mode, backend string) step {
	return moveAsOf("client:4000", there, back, backend)
}

func moveAsOf(client string, there, back conntrack.Mode, backend string) step {
	return step{then: func(w *world) {
		w.t.Helper()
		for sends, want := range map[string]conntrack.Mode{client + " > vip:80": there, backend + " > " + client: back} {
			if got := w.flowOf(sends).Mode; got != want {
				w.t.Errorf("%s is in mode %d, want %d", sends, got, want)
			}
		}
	}}
}

// near makes an uplink a veth.
func near(p *table.Port) { p.Flags |= table.PortNear }

// onlyOpening checks that the kernel moves the replies of a backend, and Go what they answer,
// as far as it has room for it.
func onlyOpening(backend string) step {
	return moveAs(conntrack.ModeOpening, conntrack.ModeLane, backend)
}

// TestHandingOver: from when on the kernel carries a flow.
func TestHandingOver(t *testing.T) {
	wait := step{then: drained}
	again := toOther(opens, reason.Repicked)
	opensAgain := opens
	opensAgain.is = reason.Established
	opensFar := step{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1}
	opensHere := step{sends: "outside:4000 > vip:80", at: "in wire", flags: syn, is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1}
	opensFarAgain := opensFar
	opensFarAgain.is = reason.Established
	play(t, []scenario{
		{
			sentence: "a connection to another node is handed over with its SYN",
			over:     onlyTCP,
			given:    laneOn("remote:8080"),
			steps:    steps(opensFar, moves(conntrack.ModeLane, "remote:8080")),
		},
		{
			sentence: "but over a veth as one within the node",
			over:     onlyTCP,
			given:    func(w *world) { laneOn("remote:8080")(w); w.port("wire", near) },
			steps: steps(opensFar, onlyOpening("remote:8080"), wait, onlyOpening("remote:8080"), opensFarAgain, onlyOpening("remote:8080"),
				step{sends: "remote:8080 > client:4000", at: "in wire", flags: syn | ack, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1},
				wait, onlyOpening("remote:8080"),
				step{sends: "client:4000 > vip:80", flags: ack, is: reason.Established, becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1},
				onlyOpening("remote:8080"), wait, moves(conntrack.ModeLane, "remote:8080")),
		},
		{
			sentence: "a connection from outside is handed over with its SYN",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps:    steps(opensHere, moveAsOf("outside:4000", conntrack.ModeLane, conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "but one that comes over a veth as one within the node",
			over:     onlyTCP,
			given:    func(w *world) { laneOn("web:8080")(w); w.port("wire", near) },
			steps:    steps(opensHere, moveAsOf("outside:4000", conntrack.ModeOpening, conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "of a connection within the node the answers are handed over at once, the rest when Go has sent on what follows the first of them",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps: steps(opens, onlyOpening("web:8080"), wait, onlyOpening("web:8080"), opensAgain, wait, onlyOpening("web:8080"),
				answers, wait, onlyOpening("web:8080"), speaks, onlyOpening("web:8080"), wait, moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "a connection whose SYN finds its endpoint gone begins as one to the other endpoint",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps:    steps(opens, after(removed("web:8080", "other:8080"), again), onlyOpening("other:8080")),
		},
		{
			sentence: "the answers to a datagram flow are handed over at once, the rest after one, when the worker has nothing to do",
			over:     onlyUDP,
			given:    laneOn("web:8080"),
			steps: steps(opens, wait, onlyBack("web:8080"), speaks, wait, onlyBack("web:8080"), answers, wait, onlyBack("web:8080"),
				speaks, onlyBack("web:8080"), wait, moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "nothing is handed over while the lane is off",
			given:    laneOff("web:8080"),
			steps:    steps(connected, answers, wait, moves(conntrack.ModeGo, "web:8080")),
		},
		{
			sentence: "a connection from before the lane was switched on is handed over when it goes on",
			over:     onlyTCP,
			given:    laneOff("web:8080"),
			steps: steps(connected, after(laneOn("web:8080"), speaks), wait, moves(conntrack.ModeGo, "web:8080"),
				answers, wait, moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "SCTP stays",
			over:     onlySCTP,
			given:    laneOn("web:8080"),
			steps:    steps(opens, answers, speaks, answers, wait, moves(conntrack.ModeGo, "web:8080")),
		},
		{
			sentence: "a flow that was looked at again stays handed over",
			given:    laneOn("web:8080"),
			steps: steps(connected, answers, speaks, wait, after(bumped("vip"), speaks), moves(conntrack.ModeLane, "web:8080"),
				answers, moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "a datagram flow that gets another backend begins anew with Go",
			over:     onlyUDP,
			given:    laneOn("web:8080"),
			steps: steps(connected, answers, speaks, wait, after(removed("web:8080", "other:8080"), again), wait, onlyBack("other:8080"),
				step{sends: "other:8080 > client:4000", is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1},
				toOther(speaks, reason.Established), wait, moves(conntrack.ModeLane, "other:8080")),
		},
		{
			sentence: "a connection that is opened again is handed over again",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps: steps(connected, answers, wait, finishes, ends, after(later(time.Second), opens), onlyOpening("web:8080"),
				answers, speaks, wait, moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "a connection within the node that may be opened again behind a reset is with Go until it is open",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps: steps(opens, accepts, speaks, wait, moves(conntrack.ModeLane, "web:8080"), resets, opensAgain, onlyOpening("web:8080"), wait,
				accepts, wait, onlyOpening("web:8080"), speaks, onlyOpening("web:8080"), wait, moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "a connection to another node stays handed over when it is opened again behind a reset",
			over:     onlyTCP,
			given:    laneOn("remote:8080"),
			steps: steps(opensFar, step{sends: "remote:8080 > client:4000", at: "in wire", flags: rst, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1},
				opensFarAgain, moves(conntrack.ModeLane, "remote:8080")),
		},
		{
			sentence: "a connection that opens while the lane is off is handed over when it is on again and the client goes on",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps: steps(opens, after(laneOff("web:8080"), accepts), speaks, wait, onlyOpening("web:8080"), answers, speaks, wait, onlyOpening("web:8080"),
				after(laneOn("web:8080"), answers), wait, onlyOpening("web:8080"), speaks, wait, moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "a connection whose Service changes while it opens is looked at again and handed over",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps: steps(opens, after(bumped("vip"), accepts), wait, onlyOpening("web:8080"), after(bumped("vip"), speaks), wait,
				moves(conntrack.ModeLane, "web:8080")),
		},
		{
			sentence: "a connection that ends before it was handed over stays with Go",
			over:     onlyTCP,
			given:    laneOn("web:8080"),
			steps:    steps(opens, accepts, finishes, wait, onlyOpening("web:8080"), ends, wait, onlyOpening("web:8080")),
		},
	})
}

// TestPortsOfEntry: every direction knows on which port its packets come in, which is
// where the other one leaves.
func TestPortsOfEntry(t *testing.T) {
	for _, c := range []struct{ sentence, client, backend, in, out string }{
		{"pod to pod", "client:4000", "web:8080", "client", "web"},
		{"pod to itself", "client:4000", "client:8080", "client", "client"},
		{"pod to another node", "client:4000", "remote:8080", "client", "wire"},
		{"pod to the node's own stack", "client:4000", "node:8080", "client", "node"},
		{"the node to a pod", "node:4000", "web:8080", "node", "web"},
		{"the node to itself", "node:4000", "node:8080", "node", "node"},
		{"the node to another node", "node:4000", "remote:8080", "node", "wire"},
		{"outside to a pod", "outside:4000", "web:8080", "wire", "web"},
		{"outside to another node", "outside:4000", "remote:8080", "wire", "wire"},
	} {
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP} {
			for _, family := range []int{4, 6} {
				t.Run(fmt.Sprintf("%s/%sv%d", c.sentence, packet.ProtocolName(protocol), family), func(t *testing.T) {
					w := newWorld(t, family, protocol)
					w.serve("vip", c.backend)
					if r := w.send(&step{sends: c.client + " > vip:80", flags: syn}); r.Reason != reason.NewFlow {
						t.Fatal(r.Reason)
					}
					fwd := w.flowOf(c.client + " > vip:80")
					var rev conntrack.Flow
					if !w.flows.Peer(&fwd, &rev) {
						t.Fatal("the flow has one direction")
					}
					for _, f := range []struct {
						name      string
						flow      *conntrack.Flow
						from, out string
					}{{"there", &fwd, c.in, c.out}, {"back", &rev, c.out, c.in}} {
						if f.flow.In != portIDs[f.from] || f.flow.Target != portIDs[f.out] {
							t.Errorf("%s: from port %d to port %d, want from %s to %s", f.name, f.flow.In, f.flow.Target, f.from, f.out)
						}
					}
				})
			}
		}
	}
}

// A backend that moved behind another port takes the port of entry of its answers along.
func TestAMovedTargetMovesThePortOfEntry(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolUDP)
	w.serve("vip", "web:8080")
	w.send(&step{sends: "client:4000 > vip:80"})
	w.moveTo("web", "other")
	w.port("web", func(p *table.Port) { p.Generation++ })
	w.send(&step{sends: "client:4000 > vip:80"})
	if f := w.flowOf("client:4000 > vip:80"); f.Target != portIDs["other"] {
		t.Errorf("the target is port %d, want that of other", f.Target)
	}
	if f := w.flowOf("web:8080 > client:4000"); f.In != portIDs["other"] {
		t.Errorf("answers come in on port %d, want that of other", f.In)
	}
}
