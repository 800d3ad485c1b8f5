package xdp

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// punts runs a packet that has to go to Go as it is, for this cause.
func (n *node) punts(t *testing.T, p *ebpf.Program, ifindex int, frame []byte, port uint16, why Cause) {
	t.Helper()
	n.puntsSkb(t, p, frame, skb{Ifindex: uint32(ifindex)}, port, why)
}

func (n *node) puntsSkb(t *testing.T, p *ebpf.Program, frame []byte, in skb, port uint16, why Cause) {
	t.Helper()
	want := punted(frame, port, byte(packet.PuntFlow))
	switch {
	case p == n.o.bpf.ToPort:
		want = puntedOut(frame, port)
	case p == n.o.bpf.FromHost:
		want.Verdict = next
	}
	check(t, n.run(t, p, frame, in), want)
	if n.cause != why {
		t.Errorf("punted for %v, want %v", n.cause, why)
	}
}

// hits runs a packet that the lane has to take.
func (n *node) hits(t *testing.T, p *ebpf.Program, in skb, frame []byte) {
	t.Helper()
	got := n.run(t, p, frame, in)
	if n.cause != 0 || got.Counts["punted"].Packets != 0 || got.Counts["claimed"].Packets != 1 || got.Verdict == dropped {
		t.Errorf("the lane did not take it: %+v, cause %v", got.Counts, n.cause)
	}
}

// slotBytes is the memory of the slot in which a flow lives.
func (n *node) slotBytes(t *testing.T, f *conntrack.Flow) []byte {
	t.Helper()
	mem, _ := n.o.FlowMemory()
	want := uint64(f.SrcPort>>8|f.SrcPort<<8) | uint64(f.DstPort>>8|f.DstPort<<8)<<16 | uint64(f.Protocol)<<32
	for at := conntrack.SlotSize; at < len(mem); at += conntrack.SlotSize {
		if key := binary.LittleEndian.Uint64(mem[at+8:]); key&0xffffffffff == want && key>>63 == 1 {
			return mem[at:][:conntrack.SlotSize]
		}
	}
	t.Fatalf("no slot holds %+v", f.Tuple)
	return nil
}

// setSequence adds to the sequence of the flow's slot.
func (n *node) setSequence(t *testing.T, f *conntrack.Flow, add uint32) {
	t.Helper()
	slot := n.slotBytes(t, f)
	binary.LittleEndian.PutUint32(slot, binary.LittleEndian.Uint32(slot)+add)
}

// TestLanePunt: whatever is not as it was when Go decided goes to Go, untouched, with the
// cause; and the flow goes on as before.
func TestLanePunt(t *testing.T) {
	n := laneNode(t)
	udpFlow, six := laneTCP, laneTCP
	udpFlow.protocol = packet.ProtocolUDP
	six.client, six.vip, six.backend = "fd00::2", "fd96::1", "fd00::3"
	nodeFlow := decided{pair{client: "10.1.0.2", vip: "10.96.0.1", backend: "10.1.0.1", clientPort: 40001, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolTCP}, podID, table.HostPort, ""}
	hostFlow := decided{pair{client: "10.1.0.1", vip: "10.96.0.1", backend: "10.1.0.3", clientPort: 40002, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolTCP}, table.HostPort, otherID, ""}
	outside := decided{pair{client: "192.0.2.9", vip: "10.96.0.1", backend: "10.1.0.3", clientPort: 40003, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolTCP}, uplinkID, otherID, ""}
	sctp := laneTCP
	sctp.protocol = packet.ProtocolSCTP
	moved, insideOut := laneTCP, outside
	moved.pair.clientPort, moved.clientPort = 40004, otherID
	insideOut.pair.clientPort, insideOut.clientPort = 40005, podID
	for _, d := range []decided{laneTCP, udpFlow, six, nodeFlow, hostFlow, outside, sctp, moved, insideOut} {
		n.install(t, d)
	}
	goFlow := laneTCP
	goFlow.pair.clientPort = 40009
	goFwd, _ := n.install(t, goFlow)
	if !n.flows.SetMode(&goFwd, conntrack.ModeGo) {
		t.Fatal("the flow is gone")
	}
	opening, opening6, opensHost := nodeFlow, six, hostFlow
	for _, d := range []*decided{&opening, &opening6, &opensHost} {
		d.pair.clientPort += 10
		fwd, _ := n.install(t, *d)
		if !n.flows.SetMode(&fwd, conntrack.ModeOpening) {
			t.Fatal("the flow is gone")
		}
	}
	in, wire, out, host := n.o.bpf.FromPod, n.o.bpf.FromUplink, n.o.bpf.ToPort, n.o.bpf.FromHost
	body := func(frame []byte) []byte { l4, _ := header(frame); return frame[l4:] }
	tcpBody, udpBody, udpBody6 := body(laneTCP.there(ack, "x")), body(udpFlow.there(0, "x")), body(six.there(ack, "x"))
	long := string(make([]byte, 1400-40+1))
	for _, c := range []struct {
		does    string
		program *ebpf.Program
		ifindex int
		port    uint16
		frame   []byte
		why     Cause
	}{
		{"a flow that is not installed", in, n.pod, podID, goFlow.there(ack, "x"), CauseGoMode},
		{"a client's packet of a connection that opens", in, n.pod, podID, opening.there(ack, "x"), CauseGoMode},
		{"one over IPv6", in, n.pod, podID, opening6.there(ack, "x"), CauseGoMode},
		{"one of the node", host, 1, table.HostPort, opensHost.there(ack, "x"), CauseGoMode},
		{"a SYN", in, n.pod, podID, laneTCP.there(packet.FlagSYN, ""), CauseSYN},
		{"a SYN over IPv6", in, n.pod, podID, six.there(packet.FlagSYN, ""), CauseSYN},
		{"a SYN with a FIN", in, n.pod, podID, laneTCP.there(packet.FlagSYN|packet.FlagFIN, ""), CauseSYN},
		{"a SYN of the node", host, 1, table.HostPort, hostFlow.there(packet.FlagSYN, ""), CauseSYN},
		{"a SYN on its way out", out, n.pod, podID, nodeFlow.back(packet.FlagSYN, ""), CauseSYN},
		{"the last hop", in, n.pod, podID, older(laneTCP.there(ack, "x"), 1), CauseTTL},
		{"no hop at all", in, n.pod, podID, older(laneTCP.there(ack, "x"), 0), CauseTTL},
		{"the last hop over IPv6", in, n.pod, podID, older(six.there(ack, "x"), 1), CauseTTL},
		{"the last hop from outside", wire, n.uplink, uplinkID, older(outside.there(ack, "x"), 1), CauseTTL},
		{"one byte more than the way out takes", in, n.pod, podID, laneTCP.there(ack, long), CauseMTU},
		{"one byte more than the way out takes, from the node", host, 1, table.HostPort, hostFlow.there(ack, long), CauseMTU},
		{"one byte more over IPv6", in, n.pod, podID, six.there(ack, long[:1400-60+1]), CauseMTU},
		{"IPv4 options", in, n.pod, podID, ip4(laneTCP.client, laneTCP.vip, 6, 0, []byte{7, 3, 4, 0}, tcpBody), CauseHeader},
		{"an IPv6 extension header", in, n.pod, podID, ip6(six.client, six.vip, 60, extensions(1, 6, udpBody6)), CauseHeader},
		{"an IPv6 fragment header", in, n.pod, podID, ip6(six.client, six.vip, 44, join([]byte{6, 0, 0, 0, 0, 0, 0, 1}, udpBody6)), CauseHeader},
		{"TCP cut off behind its ports", in, n.pod, podID, from(laneTCP.client, laneTCP.vip, 6, tcpBody[:8]), CauseHeader},
		{"TCP cut off before its checksum", in, n.pod, podID, from(laneTCP.client, laneTCP.vip, 6, tcpBody[:16]), CauseHeader},
		{"UDP cut off before its checksum", in, n.pod, podID, from(udpFlow.client, udpFlow.vip, 17, udpBody[:6]), CauseHeader},
		{"TCP over IPv6 cut off before its checksum", in, n.pod, podID, from(six.client, six.vip, 6, udpBody6[:16]), CauseHeader},
		{"SCTP, installed by mistake", in, n.pod, podID, from(sctp.client, sctp.vip, 132, tcpBody), CauseHeader},
		{"a pod whose port was another when the flow was decided", in, n.pod, podID, moved.there(ack, "x"), CausePort},
		{"an outside client that was a pod when the flow was decided", wire, n.uplink, uplinkID, insideOut.there(ack, "x"), CausePort},
		{"a reply from the node that the kernel routes from elsewhere", out, n.pod, podID, laneTCP.back(ack, "x"), CausePort},
	} {
		t.Run(c.does, func(t *testing.T) { n.punts(t, c.program, c.ifindex, c.frame, c.port, c.why) })
	}
	pod, other := skb{Ifindex: uint32(n.pod)}, skb{Ifindex: uint32(n.other)}
	t.Run("the first fragment, told by its destination as the others are", func(t *testing.T) {
		first := ip4(udpFlow.client, udpFlow.vip, 17, fragFirst, nil, udpBody)
		check(t, n.run(t, in, first, pod), punted(first, podID, packet.PuntVIP))
		if n.cause != CauseHeader {
			t.Errorf("punted for %v, want %v", n.cause, CauseHeader)
		}
	})
	t.Run("what just fits the way out", func(t *testing.T) {
		n.hits(t, in, pod, laneTCP.there(ack, long[1:]))
		n.hits(t, in, pod, six.there(ack, long[1:1400-60+1]))
		n.hits(t, in, other, laneTCP.back(ack, long+long[:99])) // the other way out takes 1500
	})
	t.Run("to the node itself there is no limit and no hop", func(t *testing.T) {
		n.hits(t, in, pod, older(nodeFlow.there(ack, string(make([]byte, 3000))), 1))
	})
	t.Run("of a connection that opens, what is too long for Go", func(t *testing.T) {
		n.hits(t, in, pod, opening.there(ack, string(make([]byte, 3000))))
	})
	t.Run("of a connection that opens, what the kernel cuts to what Go takes", func(t *testing.T) {
		got := n.run(t, in, opening.there(ack, string(make([]byte, 3000))), skb{Ifindex: uint32(n.pod), GSOSize: 1360})
		if got.Counts["punted"].Packets != 1 || n.cause != CauseGoMode {
			t.Errorf("not punted for its mode: %+v, cause %v", got.Counts, n.cause)
		}
	})
	t.Run("the answers of a connection that opens", func(t *testing.T) {
		n.hits(t, out, pod, opening.back(packet.FlagSYN|ack, ""))
		n.hits(t, in, other, opening6.back(packet.FlagSYN|ack, ""))
		n.hits(t, in, other, opensHost.back(packet.FlagSYN|ack, ""))
	})
	t.Run("the node's own packets may be on their last hop", func(t *testing.T) {
		n.hits(t, host, skb{Ifindex: 1}, older(hostFlow.there(ack, "x"), 1))
		n.hits(t, out, pod, older(nodeFlow.back(ack, "x"), 1))
	})
	t.Run("SYN with ACK is no opening", func(t *testing.T) {
		n.hits(t, in, other, laneTCP.back(packet.FlagSYN|ack, ""))
	})
}

// TestLaneSegments: of a large packet that is cut on its way every segment has to fit.
func TestLaneSegments(t *testing.T) {
	n := laneNode(t)
	six, dgram := laneTCP, laneTCP
	six.client, six.vip, six.backend = "fd00::2", "fd96::1", "fd00::3"
	dgram.protocol = packet.ProtocolUDP
	payload := string(make([]byte, 3000))
	for does, c := range map[string]struct {
		flow    decided
		header  int
		segment uint32
	}{
		"TCP":           {laneTCP, 40, 1360},
		"TCP over IPv6": {six, 60, 1340},
		"UDP":           {dgram, 28, 1372},
	} {
		n.install(t, c.flow)
		frame := c.flow.there(ack, payload)
		t.Run(does+": segments that just fit", func(t *testing.T) {
			n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.pod), GSOSize: c.segment}, frame)
		})
		t.Run(does+": segments that are too long by one byte", func(t *testing.T) {
			before, err := n.o.Counters()
			must(t, err)
			got := n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod), GSOSize: c.segment + 1})
			after, err := n.o.Counters()
			must(t, err)
			if got.Counts["punted"].Packets != 1 || after.Punts[CauseMTU].Packets != before.Punts[CauseMTU].Packets+1 {
				t.Errorf("not punted for its length: %+v", got.Counts)
			}
		})
	}
}

// TestLaneNoFlow: what goes to Go because no flow has it is counted apart.
func TestLaneNoFlow(t *testing.T) {
	n := laneNode(t)
	for _, c := range []struct {
		does  string
		frame []byte
		why   Cause
	}{
		{"a first packet", segment("10.1.0.2", "10.96.0.1", 6, 1000, 80, packet.FlagSYN, ""), CauseMiss},
		{"a first packet over IPv6", segment("fd00::2", "fd96::1", 17, 1000, 80, 0, "x"), CauseMiss},
		{"a ping", from("10.1.0.2", "10.96.0.1", 1, []byte{8, 0, 0, 0, 0, 1, 0, 1}), CauseICMP},
		{"a fragment", ip4("10.1.0.2", "10.96.0.1", 17, fragLater, nil, []byte{1}), CauseHeader},
		{"options", ip4("10.1.0.2", "10.96.0.1", 6, 0, []byte{7, 3, 4, 0}, tcp(1000, 80)), CauseHeader},
	} {
		t.Run(c.does, func(t *testing.T) {
			check(t, n.run(t, n.o.bpf.FromPod, c.frame, skb{Ifindex: uint32(n.pod)}), punted(c.frame, podID, packet.PuntVIP))
			if n.cause != c.why {
				t.Errorf("punted for %v, want %v", n.cause, c.why)
			}
		})
	}
}

// TestLaneOff: with the lane switched off every packet goes to Go; with it on again what
// is installed runs again.
func TestLaneOff(t *testing.T) {
	n := laneNode(t)
	n.install(t, laneTCP)
	for range 2 {
		n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack, "x"))
		must(t, n.o.SetLane(false))
		n.punts(t, n.o.bpf.FromPod, n.pod, laneTCP.there(ack, "x"), podID, CauseGoMode)
		n.punts(t, n.o.bpf.FromPod, n.other, laneTCP.back(ack, "x"), otherID, CauseGoMode)
		must(t, n.o.SetLane(true))
	}
}

// TestLaneTorn: while Go is writing a slot, and when the slot holds another flow by the time
// that it is copied, the packet goes to Go.
func TestLaneTorn(t *testing.T) {
	n := laneNode(t)
	fwd, _ := n.install(t, laneTCP)
	n.setSequence(t, &fwd, 1)
	n.punts(t, n.o.bpf.FromPod, n.pod, laneTCP.there(ack, "x"), podID, CauseTorn)
	n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.other)}, laneTCP.back(ack, "x"))
	n.setSequence(t, &fwd, 1)
	n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack, "x"))
}

// TestLaneForeignIncarnation: a note never reaches a flow that took the slot: the state word
// says whose it is.
func TestLaneForeignIncarnation(t *testing.T) {
	n := laneNode(t)
	fwd, _ := n.install(t, laneTCP)
	slot := n.slotBytes(t, &fwd)
	binary.LittleEndian.PutUint64(slot[48:], binary.LittleEndian.Uint64(slot[48:])+1<<48)
	before := binary.LittleEndian.Uint64(slot[48:])
	n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack|packet.FlagFIN, "x"))
	if after := binary.LittleEndian.Uint64(slot[48:]); after != before {
		t.Errorf("the state word went from %#x to %#x", before, after)
	}
}

// TestLaneSpoofed: another port's flow is no way in: not into the lane, and not to Go.
func TestLaneSpoofed(t *testing.T) {
	n := laneNode(t)
	n.install(t, laneTCP)
	outside := decided{pair{client: "192.0.2.9", vip: "10.96.0.1", backend: "10.1.0.3", clientPort: 40003, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolTCP}, uplinkID, otherID, ""}
	n.install(t, outside)
	for does, c := range map[string]struct {
		program *ebpf.Program
		ifindex int
		frame   []byte
	}{
		"a pod in another pod's flow":          {n.o.bpf.FromPod, n.other, laneTCP.there(ack, "x")},
		"a pod in an outside client's flow":    {n.o.bpf.FromPod, n.pod, outside.there(ack, "x")},
		"a pod as the backend of another pod":  {n.o.bpf.FromPod, n.pod, laneTCP.back(ack, "x")},
		"the outside in a pod's flow":          {n.o.bpf.FromUplink, n.uplink, laneTCP.there(ack, "x")},
		"the outside as a backend that is pod": {n.o.bpf.FromUplink, n.uplink, outside.back(ack, "x")},
	} {
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, c.program, c.frame, skb{Ifindex: uint32(c.ifindex)}), refused(c.frame, reason.SpoofedSource))
		})
	}
}
