package xdp

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// stacked puts a flow that the node's stack routes into the table, in this mode.
func (n *node) stacked(t testing.TB, d decided, mode conntrack.Mode) (fwd, rev conntrack.Flow) {
	t.Helper()
	fwd, rev = d.decide()
	fwd.Flags |= conntrack.FlagStack
	rev.Flags |= conntrack.FlagStack
	if r := n.flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted {
		t.Fatalf("inserting %+v: %v", d, r)
	}
	if mode == conntrack.ModeLane && !n.flows.InstallPair(&fwd) {
		t.Fatal("the flow cannot be installed")
	}
	return fwd, rev
}

// stop is one hook that a packet of a flow of the stack meets.
type stop struct {
	does    string
	flow    decided
	reply   bool
	program *ebpf.Program
	ifindex int
	port    uint16 // id of the port of that hook
	hit     bool   // translated there; else it passes as it is
}

// stops are all hooks on the way of a packet to a backend, and back, by the kinds of ports.
func (n *node) stops(a places, protocol uint8) []stop {
	flow := func(client, backend string, clientPort, backendPort uint16) decided {
		p := pair{client: client, vip: a.vip, backend: backend, clientPort: 40000, vipPort: 80, backendPort: 8080, protocol: protocol}
		return decided{p, clientPort, backendPort, ""}
	}
	in, wire, out := n.o.bpf.FromPod, n.o.bpf.FromUplink, n.o.bpf.ToPort
	podToPod, podToFar := flow(a.pod, a.other, podID, otherID), flow(a.pod, a.far, podID, uplinkID)
	podToNode, podAnywhere := flow(a.pod, a.node, podID, table.HostPort), flow(a.pod, a.far, podID, table.HostPort)
	outsideToPod, outsideToNode := flow(a.outside, a.other, uplinkID, otherID), flow(a.outside, a.node, uplinkID, table.HostPort)
	return []stop{
		{"from a pod to a pod, where it comes in", podToPod, false, in, n.pod, podID, true},
		{"its reply, where it comes in", podToPod, true, in, n.other, otherID, false},
		{"its reply, where it leaves", podToPod, true, out, n.pod, podID, true},
		{"its reply, out of a bridge above the pod that is an uplink, too", podToPod, true, out, n.uplink, uplinkID, false},
		{"from a pod to another node", podToFar, false, in, n.pod, podID, true},
		{"its reply from there", podToFar, true, wire, n.uplink, uplinkID, false},
		{"its reply from there, by another uplink", podToFar, true, wire, n.second, secondID, false},
		{"its reply from there, where it leaves", podToFar, true, out, n.pod, podID, true},
		{"from a pod to a backend in the node's stack", podToNode, false, in, n.pod, podID, true},
		{"its reply, where it leaves for the pod", podToNode, true, out, n.pod, podID, true},
		{"from a pod to where no port leads", podAnywhere, false, in, n.pod, podID, true},
		{"its reply by an uplink", podAnywhere, true, wire, n.uplink, uplinkID, false},
		{"its reply, where it leaves for the pod, from no port", podAnywhere, true, out, n.pod, podID, true},
		{"from outside to a pod", outsideToPod, false, wire, n.uplink, uplinkID, true},
		{"from outside to a pod, by another uplink", outsideToPod, false, wire, n.second, secondID, true},
		{"its reply to the outside, where it comes in", outsideToPod, true, in, n.other, otherID, false},
		{"its reply to the outside, where it leaves", outsideToPod, true, out, n.uplink, uplinkID, true},
		{"its reply to the outside, where it leaves by another uplink", outsideToPod, true, out, n.second, secondID, true},
		{"from outside to a backend in the node's stack", outsideToNode, false, wire, n.uplink, uplinkID, true},
		{"its reply, where it leaves for the outside", outsideToNode, true, out, n.uplink, uplinkID, true},
	}
}

// frames are what the stop gets, and what it makes of that.
func (s *stop) frames() (frame, out []byte, word reason.Reason) {
	if s.reply {
		return s.flow.back(ack, "even payload"), s.flow.backOut(ack, "even payload"), reason.Reply
	}
	return s.flow.there(ack, "odd payload"), s.flow.thereOut(ack, "odd payload"), reason.Established
}

// TestStack: what the node's stack routes is translated where the client's packets come in
// and where replies leave for the client, with nothing else changed: time to live, length
// and the next hop are the stack's affair. By Go or by the lane, at the same places.
func TestStack(t *testing.T) {
	n := laneNode(t)
	for family, a := range families {
		for name, protocol := range map[string]uint8{"TCP": packet.ProtocolTCP, "UDP": packet.ProtocolUDP} {
			for _, s := range n.stops(a, protocol) {
				t.Run(fmt.Sprintf("%s over %s, %s", name, family, s.does), func(t *testing.T) {
					n.stop(t, s, true)
					n.stop(t, s, false)
				})
			}
		}
	}
}

func (n *node) stop(t *testing.T, s stop, lane bool) {
	t.Helper()
	mode := conntrack.ModeGo
	if lane {
		mode = conntrack.ModeLane
	}
	fwd, _ := n.stacked(t, s.flow, mode)
	defer n.flows.Delete(&fwd)
	frame, out, word := s.frames()
	in := skb{Ifindex: uint32(s.ifindex)}
	got := n.run(t, s.program, frame, in)
	switch {
	case !s.hit:
		check(t, got, untouched(frame))
	case lane:
		check(t, got, outcome{next, out, 0, once(frame, "claimed", word.String())})
		n.runComplete(t, s.program, frame, in)
	case s.program == n.o.bpf.ToPort:
		check(t, got, puntedOut(frame, s.port))
	default:
		check(t, got, punted(frame, s.port, byte(packet.PuntFlow)))
	}
	if s.hit && !lane && n.cause != CauseGoMode {
		t.Errorf("punted for %v, want %v", n.cause, CauseGoMode)
	}
}

// TestStackPunt: what is not as it was goes to Go, where it would have been translated and
// nowhere else; what the stack looks after itself does not.
func TestStackPunt(t *testing.T) {
	n := laneNode(t)
	fwd, _ := n.stacked(t, laneTCP, conntrack.ModeLane)
	pod, other, out := skb{Ifindex: uint32(n.pod)}, skb{Ifindex: uint32(n.other)}, n.o.bpf.ToPort
	there, back := laneTCP.there(ack, "x"), laneTCP.back(ack, "x")
	t.Run("a SYN", func(t *testing.T) {
		n.punts(t, n.o.bpf.FromPod, n.pod, laneTCP.there(packet.FlagSYN, ""), podID, CauseSYN)
	})
	t.Run("a reply that leaves for another pod", func(t *testing.T) {
		n.punts(t, out, n.other, back, otherID, CausePort)
	})
	t.Run("the last hop, and more than the way out takes, are the stack's affair", func(t *testing.T) {
		n.hits(t, n.o.bpf.FromPod, pod, older(there, 1))
		n.hits(t, n.o.bpf.FromPod, pod, laneTCP.there(ack, string(make([]byte, 1500))))
		n.hits(t, out, pod, older(back, 1))
	})
	t.Run("another generation of the backend's port", func(t *testing.T) {
		change := func(c *table.Contents) { portOf(c, otherID).Generation++ }
		must(t, n.o.SyncGenerations(n.tables(t, change)))
		defer func() { must(t, n.o.SyncGenerations(n.tables(t, nil))) }()
		n.punts(t, n.o.bpf.FromPod, n.pod, there, podID, CauseGeneration)
		n.hits(t, out, pod, back)
	})
	t.Run("another generation of the client's port", func(t *testing.T) {
		change := func(c *table.Contents) { portOf(c, podID).Generation++ }
		must(t, n.o.SyncGenerations(n.tables(t, change)))
		defer func() { must(t, n.o.SyncGenerations(n.tables(t, nil))) }()
		n.punts(t, out, n.pod, back, podID, CauseGeneration)
		check(t, n.run(t, n.o.bpf.FromPod, back, other), untouched(back))
	})
	t.Run("the lane is off", func(t *testing.T) {
		must(t, n.o.SetLane(false))
		defer func() { must(t, n.o.SetLane(true)) }()
		n.punts(t, n.o.bpf.FromPod, n.pod, there, podID, CauseGoMode)
		n.punts(t, out, n.pod, back, podID, CauseGoMode)
		check(t, n.run(t, n.o.bpf.FromPod, back, other), untouched(back))
	})
	if !n.flows.Delete(&fwd) {
		t.Error("the flow is gone")
	}
}

// TestStackSource: a reply that the stack is to route passes by its address alone, so that
// address must live where it comes from.
func TestStackSource(t *testing.T) {
	n := laneNode(t)
	a := families["IPv4"]
	remote := decided{pair{client: a.pod, vip: a.vip, backend: a.far, clientPort: 40000, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolTCP}, podID, uplinkID, ""}
	moved := laneTCP
	moved.backendPort = uplinkID // when the flow began, its backend lived elsewhere
	moved.pair.clientPort, remote.pair.clientPort = 40001, 40002
	for _, d := range []decided{laneTCP, remote, moved} {
		n.stacked(t, d, conntrack.ModeLane)
	}
	in, wire := n.o.bpf.FromPod, n.o.bpf.FromUplink
	for _, c := range []struct {
		does    string
		program *ebpf.Program
		ifindex int
		frame   []byte
		passes  bool
	}{
		{"the backend's own", in, n.other, laneTCP.back(ack, "x"), true},
		{"a pod's with the address of another", in, n.pod, laneTCP.back(ack, "x"), false},
		{"from the wire with the address of a pod", wire, n.uplink, laneTCP.back(ack, "x"), false},
		{"a pod's with an address of another node", in, n.other, remote.back(ack, "x"), false},
		{"from the wire with an address of another node", wire, n.second, remote.back(ack, "x"), true},
		{"of a backend that has moved here", in, n.other, moved.back(ack, "x"), true},
	} {
		t.Run(c.does, func(t *testing.T) {
			want := refused(c.frame, reason.SpoofedSource)
			if c.passes {
				want = untouched(c.frame)
			}
			check(t, n.run(t, c.program, c.frame, skb{Ifindex: uint32(c.ifindex)}), want)
		})
	}
}

// TestStackErrors: an ICMP error about what went to the backend travels with the replies: it
// passes where it comes in and goes to Go where it leaves; one about a reply is Go's where the
// client sends it.
func TestStackErrors(t *testing.T) {
	n := laneNode(t)
	for family, a := range families {
		d := laneTCP
		d.client, d.vip, d.backend = a.pod, a.vip, a.other
		n.stacked(t, d, conntrack.ModeLane)
		unreachable, tooBig := byte(3), byte(3)
		if family == "IPv6" {
			unreachable, tooBig = 1, 2
		}
		sent, seen := d.thereOut(ack, "x"), d.backOut(ack, "x")
		byBackend, byRouter := about(a.other, a.pod, unreachable, 4, sent), about(a.outside, a.pod, tooBig, 4, sent)
		byNode, byClient := about(a.node, a.pod, tooBig, 4, sent), about(a.pod, a.vip, unreachable, 4, seen)
		byAnother := about(a.pod, a.pod, unreachable, 4, sent)
		pod, other, uplink := skb{Ifindex: uint32(n.pod)}, skb{Ifindex: uint32(n.other)}, skb{Ifindex: uint32(n.uplink)}
		t.Run(family, func(t *testing.T) {
			check(t, n.run(t, n.o.bpf.FromPod, byBackend, other), untouched(byBackend))
			check(t, n.run(t, n.o.bpf.FromUplink, byRouter, uplink), untouched(byRouter))
			check(t, n.run(t, n.o.bpf.ToPort, byNode, uplink), untouched(byNode))
			check(t, n.run(t, n.o.bpf.FromPod, byAnother, pod), refused(byAnother, reason.SpoofedSource))
			for _, frame := range [][]byte{byBackend, byRouter, byNode} {
				check(t, n.run(t, n.o.bpf.ToPort, frame, pod), puntedOut(frame, podID))
			}
			check(t, n.run(t, n.o.bpf.FromPod, byClient, pod), punted(byClient, podID, byte(packet.PuntFlow)))
		})
	}
}

// TestStackBridge: a backend on the client's own bridge addresses its replies to the client's
// station. They are addressed to the bridge instead, which brings them to the stack: what
// they answer took that way, too.
func TestStackBridge(t *testing.T) {
	n := laneNode(t)
	n.stacked(t, laneTCP, conntrack.ModeLane)
	frame := withMACs(laneTCP.back(ack, "x"), podMAC, otherMAC)
	want := untouched(frame)
	want.Frame = withMACs(frame, otherGateway, otherMAC)
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), want)
	check(t, n.run(t, n.o.bpf.FromPod, want.Frame, skb{Ifindex: uint32(n.other)}), untouched(want.Frame))
}
