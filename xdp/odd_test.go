package xdp

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/packet"
)

// TestLaneEveryTCPFlag: whatever the flags of a packet of an installed flow are, the lane
// takes it, but for what opens a connection, which is Go's.
func TestLaneEveryTCPFlag(t *testing.T) {
	n := laneNode(t)
	fwd, _ := n.install(t, laneTCP)
	for flags := range 1 << 9 {
		b := transport(packet.ProtocolTCP, laneTCP.pair.clientPort, laneTCP.vipPort, byte(flags), "urgent")
		b[12] |= byte(flags >> 8)
		binary.BigEndian.PutUint16(b[18:], 3) // urgent pointer
		f := from(laneTCP.client, laneTCP.vip, packet.ProtocolTCP, b)
		seal(f)
		if byte(flags)&(packet.FlagSYN|packet.FlagACK) == packet.FlagSYN {
			n.punts(t, n.o.bpf.FromPod, n.pod, f, podID, CauseSYN)
			continue
		}
		got := n.run(t, n.o.bpf.FromPod, f, skb{Ifindex: uint32(n.pod)})
		if got.Counts["punted"].Packets != 0 || got.Verdict == dropped {
			t.Fatalf("flags %#03x: the lane did not take it: %+v", flags, got.Counts)
		}
		if at := 34; string(got.Frame[at+4:at+16]) != string(f[at+4:at+16]) || string(got.Frame[at+18:]) != string(f[at+18:]) {
			t.Fatalf("flags %#03x: more than ports and checksum has changed", flags)
		}
	}
	if !n.flows.Lookup(&fwd.Tuple, &fwd) {
		t.Error("the flow is gone")
	}
}

// TestLaneNoChecksum: over IPv4 a datagram without checksum stays without; over IPv6 there is
// no such thing, and Go counts it.
func TestLaneNoChecksum(t *testing.T) {
	n := laneNode(t)
	for family, c := range map[string]decided{
		"IPv4": {pair{client: "10.1.0.2", vip: "10.96.0.1", backend: "10.1.0.3", clientPort: 41000, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolUDP}, podID, otherID, ""},
		"IPv6": {pair{client: "fd00::2", vip: "fd96::1", backend: "fd00::3", clientPort: 41000, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolUDP}, podID, otherID, ""},
	} {
		n.install(t, c)
		f := from(c.client, c.vip, packet.ProtocolUDP, transport(packet.ProtocolUDP, 41000, 80, 0, "none"))
		if family == "IPv6" {
			n.punts(t, n.o.bpf.FromPod, n.pod, f, podID, CauseHeader)
			continue
		}
		got := n.run(t, n.o.bpf.FromPod, f, skb{Ifindex: uint32(n.pod)})
		if got.Counts["punted"].Packets != 0 || got.Frame[34+6] != 0 || got.Frame[34+7] != 0 {
			t.Errorf("%s: %+v %x, want the lane to take it, without a checksum", family, got.Counts, got.Frame)
		}
	}
}

// TestFramesOfEveryLength: from the shortest that the kernel runs to 2,048 bytes, whole or
// cut short, claimed or not: no program faults, writes where it must not, or lengthens
// a frame.
func TestFramesOfEveryLength(t *testing.T) {
	n := laneNode(t)
	n.install(t, laneTCP)
	body := transport(packet.ProtocolTCP, laneTCP.pair.clientPort, laneTCP.vipPort, packet.FlagACK, string(make([]byte, 2048)))
	kinds := map[string]func(size int) []byte{
		"a packet that is as long as it says": func(size int) []byte {
			if size < 54 {
				return nil
			}
			f := from(laneTCP.client, laneTCP.vip, packet.ProtocolTCP, body[:size-34])
			seal(f)
			return f
		},
		"a packet that says it is longer": func(size int) []byte {
			return from(laneTCP.client, laneTCP.vip, packet.ProtocolTCP, body)[:size:size]
		},
		"a packet that says it is shorter": func(size int) []byte {
			f := from(laneTCP.client, laneTCP.vip, packet.ProtocolTCP, body[:40])
			return append(f, make([]byte, 2048)...)[:size:size]
		},
		"zeros": func(size int) []byte { return make([]byte, size) },
	}
	hooks := n.hooks()
	hooks["host"], hooks["from Go"] = testHook{n.o.bpf.FromHost, 1}, testHook{n.o.bpf.FromGo, 1}
	for kind, make := range kinds {
		for name, hook := range hooks {
			t.Run(kind+", "+name, func(t *testing.T) {
				for size := 14; size <= 2048; size++ {
					if f := make(size); f != nil {
						unharmed(t, hook, f)
					}
				}
			})
		}
	}
}

// unharmed runs a frame, if the kernel runs frames so short, and looks at its length and at
// what lies behind the headers.
func unharmed(t *testing.T, hook testHook, f []byte) {
	t.Helper()
	opts := ebpf.RunOptions{Data: f, DataOut: make([]byte, len(f)+64), Context: skb{Ifindex: uint32(hook.ifindex)}}
	if _, err := hook.program.Run(&opts); err != nil {
		if len(f) < 54 {
			return // refused by the kernel's test run, not by the program
		}
		t.Fatalf("%d bytes: %v", len(f), err)
	}
	got := opts.DataOut
	if len(got) != len(f) && len(got) != min(len(f), 14+1500) {
		t.Fatalf("%d bytes became %d", len(f), len(got))
	}
	if at := 54; len(got) > at && string(got[at:]) != string(f[at:len(got)]) {
		t.Fatalf("%d bytes: the payload changed", len(f))
	}
}
