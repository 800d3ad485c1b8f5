package xdp

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

// extensions is a chain of n IPv6 destination options headers, the last of which is
// followed by a header of type next.
func extensions(n int, next byte, payload []byte) (b []byte) {
	for i := range n {
		following := byte(60)
		if i == n-1 {
			following = next
		}
		b = append(b, following, 0, 1, 4, 0, 0, 0, 0)
	}
	return append(b, payload...)
}

// insertFlows makes the flows whose tuples the tests below meet.
func (n *node) insertFlows(t testing.TB) {
	for _, p := range []uint8{6, 17, 132} {
		n.insert(t, pair{client: "10.1.0.2", clientPort: 2000, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: p}, conntrack.ModeGo)
		n.insert(t, pair{client: "fd00::2", clientPort: 2000, vip: "fd96::1", vipPort: 80, backend: "fd00::3", backendPort: 8080, protocol: p}, conntrack.ModeGo)
	}
	n.insert(t, pair{client: "10.1.0.2", clientPort: 2001, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}, conntrack.ModeLane)
	n.insert(t, pair{client: "10.1.0.2", clientPort: 2002, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}, conntrack.ModePass)
	n.insert(t, pair{client: "192.0.2.9", clientPort: 2000, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.1", backendPort: 8080, protocol: 6}, conntrack.ModeGo)
	n.insert(t, pair{client: "10.1.0.2", clientPort: 2000, vip: "10.96.0.1", vipPort: 81, backend: "10.1.0.1", backendPort: 8080, protocol: 6}, conntrack.ModeGo)
	n.insert(t, pair{client: "fd00::2", clientPort: 2000, vip: "fd96::1", vipPort: 81, backend: "fd00::1", backendPort: 8080, protocol: 6}, conntrack.ModeGo)
	n.insert(t, pair{client: "fd00::2", clientPort: 3000, vip: "fd96::1", vipPort: 80, backend: "fd00:9::3", backendPort: 8080, protocol: 6}, conntrack.ModeGo)
	n.insert(t, pair{client: "10.1.7.2", clientPort: 6, vip: "10.96.7.7", vipPort: 7, backend: "10.1.7.3", backendPort: 5, protocol: 17, network: 7}, conntrack.ModeGo)
}

// TestClaimed: what a port's ingress hook hands to Go, with the port's id and the reason.
func TestClaimed(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	const flow, vip = packet.PuntFlow, packet.PuntVIP
	type hook = testHook
	pod, other := hook{n.o.bpf.FromPod, n.pod}, hook{n.o.bpf.FromPod, n.other}
	uplink, seven := hook{n.o.bpf.FromUplink, n.uplink}, hook{n.o.bpf.FromPod, n.seven}
	inner := from("10.1.0.3", "10.1.0.2", 17, udp(8080, 2000))[14:42]
	for _, c := range []struct {
		does  string
		at    hook
		port  uint16
		frame []byte
		why   byte
	}{
		{"a SYN from a pod to a VIP goes to Go", pod, podID, from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80)), vip},
		{"a SYN from a pod to an IPv6 VIP goes to Go", pod, podID, from("fd00::2", "fd96::1", 6, tcp(1000, 80)), vip},
		{"UDP from a pod to a VIP goes to Go", pod, podID, from("10.1.0.2", "10.96.0.1", 17, udp(1000, 53)), vip},
		{"UDP from outside to a VIP goes to Go", uplink, uplinkID, from("192.0.2.9", "10.96.0.1", 17, udp(1000, 53)), vip},
		{"TCP from outside to an IPv6 VIP goes to Go", uplink, uplinkID, from("2001:db8::9", "fd96::1", 6, tcp(1000, 80)), vip},
		{"a VIP of the pod's own network is claimed", seven, sevenID, from("10.1.7.2", "10.96.7.7", 6, tcp(1, 2)), vip},
		{"UDP to a claimed port goes to Go", pod, podID, from("10.1.0.2", "10.96.0.2", 17, udp(1000, 53)), vip},
		{"UDP with IP options to a claimed port goes to Go", pod, podID, ip4("10.1.0.2", "10.96.0.2", 17, 0, []byte{7, 3, 4, 0}, udp(1000, 53)), vip},
		{"a ping to a VIP goes to Go", pod, podID, from("10.1.0.2", "10.96.0.1", 1, []byte{8, 0, 0, 0, 0, 1, 0, 1}), vip},
		{"a ping to an IPv6 VIP goes to Go", pod, podID, from("fd00::2", "fd96::1", 58, []byte{128, 0, 0, 0, 0, 1, 0, 1}), vip},
		{"an ICMP error to a VIP goes to Go", pod, podID, from("10.1.0.2", "10.96.0.1", 1, join([]byte{3, 3, 0, 0, 0, 0, 0, 0}, inner)), vip},
		{"a protocol that no Service has goes to Go", pod, podID, from("10.1.0.2", "10.96.0.1", 50, make([]byte, 8)), vip},
		{"IPv6 without a next header to a VIP goes to Go", pod, podID, ip6("fd00::2", "fd96::1", 59, nil), vip},
		{"TCP with IP options to a VIP goes to Go", pod, podID, ip4("10.1.0.2", "10.96.0.1", 6, 0, make([]byte, 40), tcp(1000, 80)), vip},
		{"the first fragment to a VIP goes to Go", pod, podID, ip4("10.1.0.2", "10.96.0.1", 17, fragFirst, nil, udp(1000, 53)), vip},
		{"a last fragment of one byte to a VIP goes to Go", pod, podID, ip4("10.1.0.2", "10.96.0.1", 17, 0x0001, nil, []byte{1}), vip},
		{"a last fragment of no byte to a VIP goes to Go", pod, podID, ip4("10.1.0.2", "10.96.0.1", 17, 0x0001, nil, nil), vip},
		{"an IPv6 later fragment to a VIP goes to Go", pod, podID, ip6("fd00::2", "fd96::1", 44, []byte{17, 0, 0, 9, 0, 0, 0, 1, 1}), vip},
		{"a fragment header cut off goes to Go", pod, podID, ip6("fd00::2", "fd96::1", 44, []byte{17, 0, 0}), vip},
		{"hop-by-hop and destination options before TCP to a VIP go to Go", pod, podID, ip6("fd00::2", "fd96::1", 0, join([]byte{60, 1, 1, 12}, make([]byte, 12), []byte{6, 0, 1, 4, 0, 0, 0, 0}, tcp(1000, 80))), vip},
		{"more extension headers than are walked do not hide a VIP", pod, podID, ip6("fd00::2", "fd96::1", 60, extensions(20, 6, tcp(1000, 80))), vip},
		{"an extension header longer than the packet does not hide a VIP", pod, podID, ip6("fd00::2", "fd96::1", 60, []byte{6, 255, 1, 4, 0, 0, 0, 0}), vip},

		{"TCP of a flow goes to Go", pod, podID, from("10.1.0.2", "10.96.0.1", 6, tcp(2000, 80)), flow},
		{"a reply from the backend goes to Go", other, otherID, from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2000)), flow},
		{"a UDP reply goes to Go", other, otherID, from("10.1.0.3", "10.1.0.2", 17, udp(8080, 2000)), flow},
		{"an SCTP reply goes to Go", other, otherID, from("10.1.0.3", "10.1.0.2", 132, tcp(8080, 2000)), flow},
		{"an IPv6 TCP reply goes to Go", other, otherID, from("fd00::3", "fd00::2", 6, tcp(8080, 2000)), flow},
		{"an IPv6 UDP reply goes to Go", other, otherID, from("fd00::3", "fd00::2", 17, udp(8080, 2000)), flow},
		{"a reply with IP options goes to Go", other, otherID, ip4("10.1.0.3", "10.1.0.2", 6, 0, []byte{7, 3, 4, 0}, tcp(8080, 2000)), flow},
		{"a reply with the longest IP header goes to Go", other, otherID, ip4("10.1.0.3", "10.1.0.2", 6, 0, make([]byte, 40), tcp(8080, 2000)), flow},
		{"a reply behind a routing header goes to Go", other, otherID, ip6("fd00::3", "fd00::2", 43, join([]byte{6, 0, 0, 0, 0, 0, 0, 0}, tcp(8080, 2000))), flow},
		{"a reply behind an authentication header goes to Go", other, otherID, ip6("fd00::3", "fd00::2", 51, join([]byte{6, 4}, make([]byte, 22), tcp(8080, 2000))), flow},
		{"a reply behind as many extension headers as are walked goes to Go", other, otherID, ip6("fd00::3", "fd00::2", 60, extensions(8, 6, tcp(8080, 2000))), flow},
		{"the first fragment of a reply goes to Go", other, otherID, ip4("10.1.0.3", "10.1.0.2", 17, fragFirst, nil, udp(8080, 2000)), flow},
		{"the first IPv6 fragment of a reply goes to Go", other, otherID, ip6("fd00::3", "fd00::2", 44, join([]byte{17, 0, 0, 1, 0, 0, 0, 1}, udp(8080, 2000))), flow},
		{"an unfragmented reply with a fragment header goes to Go", other, otherID, ip6("fd00::3", "fd00::2", 44, join([]byte{17, 0, 0, 0, 0, 0, 0, 1}, udp(8080, 2000))), flow},
		{"a reply from another node's backend goes to Go", uplink, uplinkID, from("fd00:9::3", "fd00::2", 6, tcp(8080, 3000)), flow},
		{"a flow of network 7 is found from there", seven, sevenID, from("10.1.7.2", "10.96.7.7", 17, udp(6, 7)), flow},
		{"a flow installed in the kernel goes to Go as long as the kernel cannot repeat it", other, otherID, from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2001)), flow},
	} {
		t.Run(c.does, func(t *testing.T) {
			check(t, n.run(t, c.at.program, c.frame, skb{Ifindex: uint32(c.at.ifindex)}), punted(c.frame, c.port, c.why))
			p, ok := packet.ReadPunt(onTrunk(c.frame, 0x50, c.why, c.port))
			if d := cmp.Diff(packet.Punt{Port: c.port, Why: c.why}, p); !ok || d != "" {
				t.Errorf("Go reads the frame differently (-want +got)\n%s", d)
			}
		})
	}
}

// TestPassMode: a tuple that Go gave to the kernel passes in both directions.
func TestPassMode(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	for does, c := range map[string]struct {
		at    int
		frame []byte
	}{
		"a packet to the VIP passes": {n.pod, from("10.1.0.2", "10.96.0.1", 6, tcp(2002, 80))},
		"a reply passes":             {n.other, from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2002))},
	} {
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, n.o.bpf.FromPod, c.frame, skb{Ifindex: uint32(c.at)}), untouched(c.frame))
		})
	}
}

// TestSpoofed: a claimed packet with an address of somebody else goes nowhere.
func TestSpoofed(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	pod := testHook{n.o.bpf.FromPod, n.pod}
	uplink := testHook{n.o.bpf.FromUplink, n.uplink}
	for does, c := range map[string]struct {
		at    testHook
		frame []byte
	}{
		"a pod may not use another pod's address":                {pod, from("10.1.0.3", "10.96.0.1", 6, tcp(1000, 80))},
		"a pod may not use another pod's IPv6 address":           {pod, from("fd00::3", "fd96::1", 6, tcp(1000, 80))},
		"a pod may not use the node's address":                   {pod, from("10.1.0.1", "10.96.0.1", 6, tcp(1000, 80))},
		"a pod may not use an address that nobody has":           {pod, from("10.1.0.99", "10.96.0.1", 17, udp(1000, 53))},
		"a pod may not use an address of another network":        {pod, from("10.1.7.2", "10.96.0.1", 17, udp(1000, 53))},
		"a pod may not send replies in another's name":           {pod, from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2000))},
		"a pod may not send fragments in another's name":         {pod, ip4("10.1.0.3", "10.96.0.1", 17, fragLater, nil, []byte{1})},
		"an uplink does not bring a local pod's address":         {uplink, from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))},
		"an uplink does not bring the node's own address":        {uplink, from("10.1.0.1", "10.96.0.1", 6, tcp(1000, 80))},
		"an uplink does not bring the node's own IPv6 address":   {uplink, from("fd00::1", "fd96::1", 6, tcp(1000, 80))},
		"an uplink does not bring replies of a local pod's name": {uplink, from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2000))},
	} {
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, c.at.program, c.frame, skb{Ifindex: uint32(c.at.ifindex)}), refused(c.frame, reason.SpoofedSource))
		})
	}
}

// TestEgress: out of a device only packets of flows are met, and no source is checked: what
// leaves the node's own stack there is the node's.
func TestEgress(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	for does, c := range map[string]struct {
		ifindex int
		port    uint16
		frame   []byte
	}{
		"a reply of a backend on the node to a pod goes to Go":           {n.pod, podID, from("10.1.0.1", "10.1.0.2", 6, tcp(8080, 2000))},
		"a reply of a backend on the node to a pod over IPv6 goes to Go": {n.pod, podID, from("fd00::1", "fd00::2", 6, tcp(8080, 2000))},
		"a reply of a backend on the node to the outside goes to Go":     {n.uplink, uplinkID, from("10.1.0.1", "192.0.2.9", 6, tcp(8080, 2000))},
		"a reply that a pod sent before its port was known goes to Go":   {n.pod, podID, from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2000))},
		"a packet of a flow that the node routes to the VIP goes to Go":  {n.uplink, uplinkID, from("10.1.0.2", "10.96.0.1", 6, tcp(2000, 80))},
		"a reply that is fragmented goes to Go with its first fragment":  {n.pod, podID, ip4("10.1.0.3", "10.1.0.2", 17, fragFirst, nil, udp(8080, 2000))},
	} {
		t.Run(does, func(t *testing.T) {
			got := n.run(t, n.o.bpf.ToPort, c.frame, skb{Ifindex: uint32(c.ifindex)})
			check(t, got, puntedOut(c.frame, c.port))
			p, ok := packet.ReadPunt(got.Frame)
			if d := cmp.Diff(packet.Punt{Port: c.port, Egress: true}, p); !ok || d != "" {
				t.Errorf("Go reads the frame differently (-want +got)\n%s", d)
			}
		})
	}
	t.Run("a packet to a VIP without a flow passes", func(t *testing.T) {
		frame := from("10.1.0.1", "10.96.0.1", 6, tcp(1, 80))
		check(t, n.run(t, n.o.bpf.ToPort, frame, skb{Ifindex: uint32(n.uplink)}), untouched(frame))
	})
	t.Run("a tuple that Go gave to the kernel passes", func(t *testing.T) {
		frame := from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2002))
		check(t, n.run(t, n.o.bpf.ToPort, frame, skb{Ifindex: uint32(n.pod)}), untouched(frame))
	})
}

// TestMark: what Go gave back is let by once, and the mark is gone afterwards.
func TestMark(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	vip := from("10.1.0.2", "10.96.0.1", 6, tcp(2000, 80))
	reply := from("10.1.0.1", "10.1.0.2", 6, tcp(8080, 2000))
	for does, c := range map[string]struct {
		program *ebpf.Program
		ifindex int
		frame   []byte
		mark    uint32
		want    outcome
	}{
		"a marked packet passes a pod's ingress":      {n.o.bpf.FromPod, n.pod, vip, skipOnce, outcome{next, vip, 0, map[string]Count{}}},
		"a marked packet passes an uplink's ingress":  {n.o.bpf.FromUplink, n.uplink, vip, skipOnce, outcome{next, vip, 0, map[string]Count{}}},
		"a marked packet passes a pod's egress":       {n.o.bpf.ToPort, n.pod, reply, skipOnce, outcome{next, reply, 0, map[string]Count{}}},
		"a marked packet passes an uplink's egress":   {n.o.bpf.ToPort, n.uplink, vip, skipOnce, outcome{next, vip, 0, map[string]Count{}}},
		"another mark does not let a packet by":       {n.o.bpf.FromPod, n.pod, vip, 0x1ace0002, outcome{redirect, onTrunk(vip, 0x50, 0, podID), 0x1ace0002, once(vip, "claimed", "punted")}},
		"another mark stays on a packet that passes":  {n.o.bpf.FromPod, n.pod, from("10.1.0.2", "10.1.0.3", 6, tcp(1, 2)), 7, outcome{next, from("10.1.0.2", "10.1.0.3", 6, tcp(1, 2)), 7, once(vip, reason.NotClaimed.String())}},
		"another mark does not let a reply by either": {n.o.bpf.ToPort, n.pod, reply, 7, outcome{redirect, puntedOut(reply, podID).Frame, 7, once(reply, "claimed", "punted")}},
	} {
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, c.program, c.frame, skb{Ifindex: uint32(c.ifindex), Mark: c.mark}), c.want)
		})
	}
}

// TestNoTrunk: until the trunk is there, claimed packets are dropped and counted.
func TestNoTrunk(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	s := n.o.settings
	s.Trunk = 0
	must(t, n.o.set(s))
	frame := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), refused(frame, reason.NoWorker))
}

// TestTooBig: of a packet that the trunk cannot carry Go gets the beginning, marked as such
// and counted as what did not fit; a veth would lose it without a word.
func TestTooBig(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	for does, c := range map[string]struct {
		payload int
		segment uint32
		cut     bool
	}{
		"a packet of just the trunk's MTU goes to Go":                 {1500 - 20, 0, false},
		"one byte more is cut":                                        {1500 - 19, 0, true},
		"a large packet that is made into small segments goes to Go":  {3000, 1000, false},
		"a packet within the MTU is not cut for its segment's length": {1000, 60000, false},
	} {
		t.Run(does, func(t *testing.T) {
			frame := from("10.1.0.2", "10.96.0.1", 6, join(tcp(1000, 80), make([]byte, c.payload-20)))
			want := punted(frame, podID, packet.PuntVIP)
			if c.cut {
				want.Frame = onTrunk(frame[:14+1500], 0x50, packet.PuntVIP|0x40, podID)
			}
			check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod), GSOSize: c.segment}), want)
			if c.cut != (n.cause == CauseMTU) {
				t.Errorf("punted for %v", n.cause)
			}
			p, _ := packet.ReadPunt(want.Frame)
			if d := cmp.Diff(packet.Punt{Port: podID, Why: packet.PuntVIP, Cut: c.cut}, p); d != "" {
				t.Errorf("Go reads the frame differently (-want +got)\n%s", d)
			}
		})
	}
}
