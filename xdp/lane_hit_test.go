package xdp

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

const (
	skipOnce = 0x1ace0001
	ack      = packet.FlagACK
)

func isUnknownFlag(err error) bool { return errors.Is(err, unix.EINVAL) }

// places are the addresses of a family that the cases below speak of.
type places struct{ pod, other, node, vip, far, outside, self string }

var families = map[string]places{
	"IPv4": {pod: "10.1.0.2", other: "10.1.0.3", node: "10.1.0.1", vip: "10.96.0.1", far: "10.2.0.3", outside: "192.0.2.9", self: "192.0.2.1"},
	"IPv6": {pod: "fd00::2", other: "fd00::3", node: "fd00::1", vip: "fd96::1", far: "fd00:2::3", outside: "2001:db8::9", self: "2001:db8::1"},
}

// crossing is one direction of one flow at one hook.
type crossing struct {
	does    string
	flow    decided
	reply   bool
	program *ebpf.Program
	ifindex int
	verdict int
	mark    uint32
	ttl     byte
	macs    func(frame []byte) []byte
}

// crossings are all ways through the lane: by the kinds of the two ports and the hook.
func (n *node) crossings(a places, protocol uint8) []crossing {
	flow := func(client, backend string, clientPort, backendPort uint16, source string) decided {
		p := pair{client: client, vip: a.vip, backend: backend, clientPort: 40000, vipPort: 80, backendPort: 8080, protocol: protocol}
		return decided{p, clientPort, backendPort, source}
	}
	same := func(f []byte) []byte { return f }
	toPod := func(f []byte) []byte { return withMACs(f, podMAC, podGateway) }
	toOther := func(f []byte) []byte { return withMACs(f, otherMAC, otherGateway) }
	up := func(f []byte) []byte { return toNode(f, lace0MAC) }
	in, wire, out, host := n.o.bpf.FromPod, n.o.bpf.FromUplink, n.o.bpf.ToPort, n.o.bpf.FromHost
	podToPod := flow(a.pod, a.other, podID, otherID, "")
	hairpin := flow(a.pod, a.pod, podID, podID, "")
	outsideToPod := flow(a.outside, a.other, uplinkID, otherID, "")
	podToFar := flow(a.pod, a.far, podID, uplinkID, "")
	outsideToFar := flow(a.outside, a.far, uplinkID, uplinkID, a.self)
	podToNode := flow(a.pod, a.node, podID, table.HostPort, "")
	outsideToNode := flow(a.outside, a.node, uplinkID, table.HostPort, "")
	nodeToPod := flow(a.node, a.other, table.HostPort, otherID, "")
	nodeToFar := flow(a.node, a.far, table.HostPort, uplinkID, "")
	nodeToNode := flow(a.node, a.self, table.HostPort, table.HostPort, a.vip)
	return []crossing{
		{"from a pod to a pod", podToPod, false, in, n.pod, redirect, 0, 63, toOther},
		{"its reply", podToPod, true, in, n.other, redirect, 0, 63, toPod},
		{"from a pod to itself", hairpin, false, in, n.pod, redirect, 0, 63, toPod},
		{"its reply to itself", hairpin, true, in, n.pod, redirect, 0, 63, toPod},
		{"from outside to a pod", outsideToPod, false, wire, n.uplink, redirect, 0, 63, toOther},
		{"from outside to a pod, by another uplink", outsideToPod, false, wire, n.second, redirect, 0, 63, toOther},
		{"its reply to the outside", outsideToPod, true, in, n.other, redirect, skipOnce, 63, same},
		{"from a pod to another node", podToFar, false, in, n.pod, redirect, skipOnce, 63, same},
		{"its reply from another node", podToFar, true, wire, n.uplink, redirect, 0, 63, toPod},
		{"from outside to another node", outsideToFar, false, wire, n.uplink, redirect, skipOnce, 63, same},
		{"its reply from another node to the outside", outsideToFar, true, wire, n.uplink, redirect, skipOnce, 63, same},
		{"from a pod to a backend in the node's stack: on up from where it is", podToNode, false, in, n.pod, next, 0, 64, same},
		{"its reply on the way to the pod: on as it goes", podToNode, true, out, n.pod, next, 0, 64, same},
		{"its reply on the way out by a wrong device", podToNode, true, out, n.uplink, redirect, skipOnce, 64, toPod},
		{"from outside to a backend in the node's stack", outsideToNode, false, wire, n.uplink, next, 0, 64, same},
		{"its reply on the way out", outsideToNode, true, out, n.uplink, next, 0, 64, same},
		{"its reply on the way out by another uplink", outsideToNode, true, out, n.second, redirect, skipOnce, 64, same},
		{"from the node to a pod", nodeToPod, false, host, 1, redirect, skipOnce, 64, toOther},
		{"from the node to a pod, routed past lace0", nodeToPod, false, out, n.uplink, redirect, skipOnce, 64, toOther},
		{"its reply to the node", nodeToPod, true, in, n.other, redirect, skipOnce, 64, up},
		{"from the node to another node", nodeToFar, false, host, 1, redirect, skipOnce, 64, same},
		{"its reply from another node to the node", nodeToFar, true, wire, n.uplink, redirect, skipOnce, 64, up},
		{"from the node to itself", nodeToNode, false, host, 1, redirect, skipOnce, 64, up},
		{"its reply from the node to itself", nodeToNode, true, host, 1, redirect, skipOnce, 64, up},
	}
}

// TestLaneHit: a packet of an installed flow is rewritten and delivered without Go, byte for
// byte as it should be, its checksum right however much of it the kernel knows already, and
// noted in the flow.
func TestLaneHit(t *testing.T) {
	n := laneNode(t)
	for family, a := range families {
		for name, protocol := range map[string]uint8{"TCP": packet.ProtocolTCP, "UDP": packet.ProtocolUDP} {
			for _, c := range n.crossings(a, protocol) {
				t.Run(fmt.Sprintf("%s over %s, %s", name, family, c.does), func(t *testing.T) { n.cross(t, c) })
			}
		}
	}
}

func (n *node) cross(t *testing.T, c crossing) {
	t.Helper()
	fwd, rev := n.install(t, c.flow)
	defer n.flows.Delete(&fwd)
	flow, word := &fwd, reason.Established
	frame, out := c.flow.there(ack, "odd payload"), c.flow.thereOut(ack, "odd payload")
	if c.reply {
		flow, word = &rev, reason.Reply
		frame, out = c.flow.back(ack, "even payload"), c.flow.backOut(ack, "even payload")
	}
	in := skb{Ifindex: uint32(c.ifindex)}
	want := outcome{c.verdict, c.macs(older(out, c.ttl)), c.mark, once(frame, "claimed", word.String())}
	check(t, n.run(t, c.program, frame, in), want)
	if !n.runComplete(t, c.program, frame, in) {
		t.Log("this kernel cannot test sums by devices")
	}
	var got conntrack.Flow
	if !n.flows.Lookup(&flow.Tuple, &got) {
		t.Fatal("the flow is gone")
	}
	wantState := conntrack.StateSeen
	if c.flow.protocol == packet.ProtocolTCP {
		wantState |= conntrack.StateACK
	}
	if now := clock(t); got.State != wantState || now-got.LastSeen > 100 {
		t.Errorf("the flow notes state %#x at %d, want %#x at about %d", got.State, got.LastSeen, wantState, now)
	}
}

// clock is the time of the flow table.
func clock(t *testing.T) uint32 {
	t.Helper()
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return conntrack.Tick(now.Nano())
}

var laneTCP = decided{pair{client: "10.1.0.2", vip: "10.96.0.1", backend: "10.1.0.3", clientPort: 40000, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolTCP}, podID, otherID, ""}

// TestLaneState: what the lane sees of a TCP connection is noted as Go would note it.
func TestLaneState(t *testing.T) {
	n := laneNode(t)
	const seen, syn, acked, fin, rst = conntrack.StateSeen, conntrack.StateSYN, conntrack.StateACK, conntrack.StateFIN, conntrack.StateRST
	for does, c := range map[string]struct {
		flags []byte
		want  conntrack.State
	}{
		"data":                                   {[]byte{ack}, seen | acked},
		"pushed data":                            {[]byte{ack | packet.FlagPSH}, seen | acked},
		"a FIN stays in the lane and is noted":   {[]byte{ack | packet.FlagFIN}, seen | acked | fin},
		"an RST stays in the lane and is noted":  {[]byte{packet.FlagRST}, seen | rst},
		"an RST with an ACK says nothing but so": {[]byte{packet.FlagRST | ack}, seen | rst},
		"data takes an RST back":                 {[]byte{packet.FlagRST, ack}, seen | acked},
		"a FIN is not taken back":                {[]byte{packet.FlagFIN | ack, ack}, seen | acked | fin},
		"a SYN with an ACK":                      {[]byte{packet.FlagSYN | ack}, seen | syn},
		"no flag at all":                         {[]byte{0}, seen},
	} {
		t.Run(does, func(t *testing.T) {
			fwd, rev := n.install(t, laneTCP)
			defer n.flows.Delete(&fwd)
			for _, flags := range c.flags {
				frame := laneTCP.back(flags, "x")
				want := outcome{redirect, withMACs(older(laneTCP.backOut(flags, "x"), 63), podMAC, podGateway), 0, once(frame, "claimed", reason.Reply.String())}
				check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), want)
			}
			var f, peer conntrack.Flow
			if !n.flows.Lookup(&rev.Tuple, &f) || !n.flows.Peer(&f, &peer) {
				t.Fatal("the flow is gone")
			}
			if f.State != c.want || peer.State != seen {
				t.Errorf("state %#x, the other direction's %#x; want %#x and %#x", f.State, peer.State, c.want, seen)
			}
			if wantState := conntrack.StateOf(c.flags[len(c.flags)-1]); f.State&wantState != wantState {
				t.Errorf("state %#x lacks what Go would note, %#x", f.State, wantState)
			}
		})
	}
}

// TestLaneTouch: a packet without news writes nothing, and the clock never goes back.
func TestLaneTouch(t *testing.T) {
	n := laneNode(t)
	_, rev := n.install(t, laneTCP)
	frame := laneTCP.back(ack, "x")
	in := skb{Ifindex: uint32(n.other)}
	var f conntrack.Flow
	future := clock(t) + 1000
	if !n.flows.Lookup(&rev.Tuple, &f) || !n.flows.Touch(&f, conntrack.StateSeen, future) {
		t.Fatal("the flow is gone")
	}
	n.run(t, n.o.bpf.FromPod, frame, in)
	if !n.flows.Lookup(&rev.Tuple, &f) || f.LastSeen != future {
		t.Errorf("last seen at %d, want it to stay at %d", f.LastSeen, future)
	}
}

// TestLaneZeroChecksum: UDP without a checksum stays without one over IPv4, and is Go's to
// refuse over IPv6; and a checksum that comes out as zero is written as ffff, for zero would say that there is none.
func TestLaneZeroChecksum(t *testing.T) {
	n := laneNode(t)
	for family, a := range families {
		for _, backendPort := range []uint16{8080, 80} { // 80: the ports stay
			d := decided{pair{client: a.pod, vip: a.vip, backend: a.other, clientPort: 40000, vipPort: 80, backendPort: backendPort, protocol: packet.ProtocolUDP}, podID, otherID, ""}
			fwd, _ := n.install(t, d)
			run := func(does string, frame, out []byte) {
				t.Run(fmt.Sprintf("%s over %s to port %d", does, family, backendPort), func(t *testing.T) {
					want := outcome{redirect, withMACs(older(out, 63), otherMAC, otherGateway), 0, once(frame, "claimed", reason.Established.String())}
					check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), want)
				})
			}
			frame, out := d.there(0, "lace"), d.thereOut(0, "lace")
			l4, _ := header(frame)
			clear(frame[l4+6 : l4+8])
			clear(out[l4+6 : l4+8])
			if l4 == 14+20 {
				run("without a checksum", frame, out)
			} else {
				t.Run(fmt.Sprintf("without a checksum, which IPv6 forbids, to port %d", backendPort), func(t *testing.T) {
					n.punts(t, n.o.bpf.FromPod, n.pod, frame, podID, CauseHeader)
				})
			}

			// A payload whose last word brings the sum behind the rewrite to ffff.
			frame, out = d.there(0, "lace\x00\x00"), d.thereOut(0, "lace\x00\x00")
			copy(out[len(out)-2:], out[l4+6:l4+8])
			copy(frame[len(frame)-2:], out[len(out)-2:])
			seal(frame)
			out[l4+6], out[l4+7] = 0xff, 0xff
			if wholeSum(out) != 0xffff {
				t.Fatalf("the frame that is wanted has a wrong checksum: %x", out)
			}
			run("with a checksum that becomes zero", frame, out)
			n.flows.Delete(&fwd)
		}
	}
}

// TestLaneWeakOrder: with the barriers of processors that reorder loads nothing else changes.
func TestLaneWeakOrder(t *testing.T) {
	n := laneNode(t)
	s := n.o.settings
	s.WeakOrder = 1
	must(t, n.o.set(s))
	for _, c := range n.crossings(families["IPv6"], packet.ProtocolTCP) {
		t.Run(c.does, func(t *testing.T) { n.cross(t, c) })
	}
	fwd, _ := n.install(t, laneTCP)
	n.setSequence(t, &fwd, 1)
	n.punts(t, n.o.bpf.FromPod, n.pod, laneTCP.there(ack, "x"), podID, CauseTorn)
}
