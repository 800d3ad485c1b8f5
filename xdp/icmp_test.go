package xdp

import (
	"encoding/binary"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// about is an ICMP error of the packet's family that quotes it from its IP header on.
func about(src, dst string, typ, code byte, quoted []byte) []byte {
	proto := byte(1)
	if binary.BigEndian.Uint16(quoted[12:]) == 0x86dd {
		proto = 58
	}
	return from(src, dst, proto, join([]byte{typ, code, 0, 0, 0, 0, 0, 0}, quoted[14:]))
}

// Packets as they were on the wire when somebody complained: translated, to the backend, or
// a reply, in the name of the VIP.
var (
	toBackend   = from("10.1.0.2", "10.1.0.3", 6, tcp(2000, 8080))
	toBackend6  = from("fd00::2", "fd00::3", 6, tcp(2000, 8080))
	toRemote6   = from("fd00::2", "fd00:9::3", 6, tcp(3000, 8080))
	replied     = from("10.96.0.1", "10.1.0.2", 17, udp(80, 2000))
	replied6    = from("fd96::1", "fd00::2", 17, udp(80, 2000))
	answeredOut = from("10.96.0.1", "192.0.2.9", 6, tcp(80, 2000))
)

// TestICMPErrorClaimed: an error about a packet of a registered flow goes to Go, from
// whatever hook and whoever sent it, counted by its own cause.
func TestICMPErrorClaimed(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	n.insert(t, pair{client: "10.1.0.1", clientPort: 2000, vip: "10.96.0.9", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}, conntrack.ModeLane)
	pod, other := testHook{n.o.bpf.FromPod, n.pod}, testHook{n.o.bpf.FromPod, n.other}
	uplink, seven := testHook{n.o.bpf.FromUplink, n.uplink}, testHook{n.o.bpf.FromPod, n.seven}
	outPod, outUplink := testHook{n.o.bpf.ToPort, n.pod}, testHook{n.o.bpf.ToPort, n.uplink}
	const flow, vip, out = packet.PuntFlow, packet.PuntVIP, packet.PuntFlow | 0x80
	type row struct {
		does  string
		at    testHook
		port  uint16
		frame []byte
		why   byte
	}
	cases := []row{
		{"port unreachable from the backend itself", other, otherID, about("10.1.0.3", "10.1.0.2", 3, 3, toBackend), flow},
		{"the same over IPv6", other, otherID, about("fd00::3", "fd00::2", 1, 4, toBackend6), flow},
		{"fragmentation needed, from a router on the wire", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 3, 4, toBackend), flow},
		{"packet too big, from a router on the wire", uplink, uplinkID, about("2001:db8::1", "fd00::2", 2, 0, toRemote6), flow},
		{"about a flow that runs in the kernel", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 3, 4, from("10.1.0.2", "10.1.0.3", 6, tcp(2001, 8080))), flow},
		{"about a datagram", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 3, 1, from("10.1.0.2", "10.1.0.3", 17, udp(2000, 8080))), flow},
		{"about SCTP", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 3, 2, from("10.1.0.2", "10.1.0.3", 132, tcp(2000, 8080))), flow},
		{"from the client, about a reply in the name of the VIP", pod, podID, about("10.1.0.2", "10.96.0.1", 3, 3, replied), flow},
		{"the same over IPv6", pod, podID, about("fd00::2", "fd96::1", 1, 4, replied6), flow},
		{"from a router outside, about a reply in the name of the VIP", uplink, uplinkID, about("198.51.100.1", "10.96.0.1", 11, 0, answeredOut), flow},
		{"what the node itself says of a packet that it forwarded, on its way out to a pod", outPod, podID, about("10.1.0.1", "10.1.0.2", 3, 4, toBackend), out},
		{"the same over IPv6", outPod, podID, about("fd00::1", "fd00::2", 2, 0, toBackend6), out},
		{"what the node itself says, on its way out to the wire", outUplink, uplinkID, about("10.1.0.1", "192.0.2.9", 3, 4, from("192.0.2.9", "10.1.0.1", 6, tcp(2000, 8080))), out},
		{"in another network", seven, sevenID, about("10.1.7.2", "10.96.7.7", 3, 3, from("10.96.7.7", "10.1.7.2", 17, udp(7, 6))), flow},

		{"the quoted packet had IP options", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 3, 4, ip4("10.1.0.2", "10.1.0.3", 6, 0, make([]byte, 40), tcp(2000, 8080))), flow},
		{"the quoted packet was a first fragment", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 11, 1, ip4("10.1.0.2", "10.1.0.3", 17, fragFirst, nil, udp(2000, 8080))), flow},
		{"the quoted packet had extension headers", uplink, uplinkID, about("2001:db8::1", "fd00::2", 2, 0, ip6("fd00::2", "fd00::3", 60, extensions(8, 6, tcp(2000, 8080)))), flow},
		{"the error has IP options", uplink, uplinkID, ip4("198.51.100.1", "10.1.0.2", 1, 0, []byte{7, 3, 4, 0}, about("1.1.1.1", "10.1.0.2", 3, 4, toBackend)[34:]), flow},
		{"the error has extension headers", uplink, uplinkID, ip6("2001:db8::1", "fd00::2", 60, extensions(2, 58, about("::2", "fd00::2", 2, 0, toBackend6)[54:])), flow},
		{"no more is quoted than the ports", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 3, 4, toBackend[:14+24]), flow},
		{"no more is quoted than the ports, IPv6", uplink, uplinkID, about("2001:db8::1", "fd00::2", 2, 0, toBackend6[:14+44]), flow},

		{"to a VIP about nothing that is known", pod, podID, about("10.1.0.2", "10.96.0.1", 3, 3, from("10.96.0.1", "10.1.0.2", 17, udp(80, 9999))), vip},
		{"to a VIP, of a type that nobody knows", pod, podID, from("fd00::2", "fd96::1", 58, []byte{100, 0, 0, 0, 0, 0, 0, 0}), vip},
	}
	for _, c := range cases {
		t.Run(c.does, func(t *testing.T) {
			want := punted(c.frame, c.port, c.why)
			if c.why == out {
				want = puntedOut(c.frame, c.port)
			}
			check(t, n.run(t, c.at.program, c.frame, skb{Ifindex: uint32(c.at.ifindex)}), want)
			if n.cause != CauseICMP {
				t.Errorf("punted for %v, want %v", n.cause, CauseICMP)
			}
		})
	}
	t.Run("of the node to a VIP", func(t *testing.T) {
		frame := about("10.1.0.1", "10.96.0.9", 3, 3, from("10.96.0.9", "10.1.0.1", 6, tcp(80, 2000)))
		want := punted(frame, table.HostPort, flow)
		want.Verdict = next
		check(t, n.run(t, n.o.bpf.FromHost, frame, skb{Ifindex: 1}), want)
	})
	for _, family := range []struct {
		name         string
		types        []byte
		router, dest string
		quoted       []byte
	}{
		{"ICMP", []byte{3, 4, 5, 11, 12}, "198.51.100.1", "10.1.0.2", toBackend},
		{"ICMPv6", []byte{1, 2, 3, 4}, "2001:db8::1", "fd00::2", toBackend6},
	} {
		t.Run("every type of error, and no other type: "+family.name, func(t *testing.T) {
			for typ := range 256 {
				frame := about(family.router, family.dest, byte(typ), 0, family.quoted)
				want := untouched(frame)
				for _, e := range family.types {
					if byte(typ) == e {
						want = punted(frame, uplinkID, flow)
					}
				}
				check(t, n.run(t, n.o.bpf.FromUplink, frame, skb{Ifindex: uint32(n.uplink)}), want)
			}
		})
	}
	t.Run("every code of destination unreachable", func(t *testing.T) {
		for code := range 16 {
			frame := about("198.51.100.1", "10.1.0.2", 3, byte(code), toBackend)
			check(t, n.run(t, n.o.bpf.FromUplink, frame, skb{Ifindex: uint32(n.uplink)}), punted(frame, uplinkID, flow))
		}
	})
}

// TestICMPErrorUnclaimed: an error about anything else passes untouched.
func TestICMPErrorUnclaimed(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	must(t, n.o.SetBackends(nil)) // errors are looked at whoever sends them, fragments are not
	for does, frame := range map[string][]byte{
		"about traffic between pods":                       about("198.51.100.1", "10.1.0.2", 3, 4, from("10.1.0.2", "10.1.0.3", 6, tcp(2000, 9999))),
		"about the same packet the other way round":        about("198.51.100.1", "10.1.0.3", 3, 4, from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2000))),
		"about another protocol with the same bytes":       about("198.51.100.1", "10.1.0.2", 3, 4, from("10.1.0.2", "10.1.0.3", 47, tcp(2000, 8080))),
		"to somebody who did not send what is quoted":      about("198.51.100.1", "10.1.0.9", 3, 4, toBackend),
		"to somebody else, IPv6":                           about("2001:db8::1", "fd00::9", 2, 0, toBackend6),
		"about a later fragment":                           about("198.51.100.1", "10.1.0.2", 11, 1, ip4("10.1.0.2", "10.1.0.3", 17, fragLater, nil, udp(2000, 8080))),
		"about a later fragment, IPv6":                     about("2001:db8::1", "fd00::2", 3, 1, ip6("fd00::2", "fd00::3", 44, join([]byte{6, 0, 0, 9, 0, 0, 0, 1}, tcp(2000, 8080)))),
		"with more extension headers than are walked":      about("2001:db8::1", "fd00::2", 2, 0, ip6("fd00::2", "fd00::3", 60, extensions(9, 6, tcp(2000, 8080)))),
		"quoting IPv6 in an error of IPv4":                 from("198.51.100.1", "10.1.0.2", 1, join([]byte{3, 4, 0, 0, 0, 0, 0, 0}, toBackend6[14:])),
		"quoting IPv4 in an error of IPv6":                 from("2001:db8::1", "fd00::2", 58, join([]byte{2, 0, 0, 0, 0, 0, 0, 0}, toBackend[14:])),
		"quoting an IPv4 header of 16 bytes":               about("198.51.100.1", "10.1.0.2", 3, 4, patchedAt(toBackend, 14, 0x44)),
		"in a protocol that belongs to the other family":   from("198.51.100.1", "10.1.0.2", 58, join([]byte{2, 0, 0, 0, 0, 0, 0, 0}, toBackend[14:])),
		"a ping that carries what looks like such a quote": from("198.51.100.1", "10.1.0.2", 1, join([]byte{8, 0, 0, 0, 0, 0, 0, 0}, toBackend[14:])),
		"that is a fragment itself":                        ip4("198.51.100.1", "10.1.0.2", 1, fragFirst, nil, about("1.1.1.1", "10.1.0.2", 3, 4, toBackend)[34:]),
		"about a tuple that Go gave to the kernel":         about("198.51.100.1", "10.1.0.2", 3, 4, from("10.1.0.2", "10.1.0.3", 6, tcp(2002, 8080))),
	} {
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, n.o.bpf.FromUplink, frame, skb{Ifindex: uint32(n.uplink)}), untouched(frame))
			check(t, n.run(t, n.o.bpf.ToPort, frame, skb{Ifindex: uint32(n.pod)}), untouched(frame))
		})
	}
	t.Run("in another network than the flow", func(t *testing.T) {
		frame := about("10.1.7.3", "10.1.0.2", 3, 4, toBackend)
		check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.seven)}), untouched(frame))
	})
	for name, whole := range map[string][]byte{"IPv4": about("198.51.100.1", "10.1.0.2", 3, 4, toBackend), "IPv6": about("2001:db8::1", "fd00::2", 2, 0, toBackend6)} {
		t.Run("cut off before the ports, at each byte, "+name, func(t *testing.T) {
			ip := 20
			if name == "IPv6" {
				ip = 40
			}
			for size := 14 + ip; size < 14+ip+8+ip+4; size++ {
				frame := whole[:size:size]
				check(t, n.run(t, n.o.bpf.FromUplink, frame, skb{Ifindex: uint32(n.uplink)}), untouched(frame))
			}
		})
	}
	t.Run("a pod that says so in another's name goes nowhere", func(t *testing.T) {
		frame := about("10.1.0.3", "10.1.0.2", 3, 3, toBackend)
		check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), refused(frame, reason.SpoofedSource))
	})
	t.Run("nor does one from the wire in a local pod's name", func(t *testing.T) {
		frame := about("10.1.0.3", "10.1.0.2", 3, 3, toBackend)
		check(t, n.run(t, n.o.bpf.FromUplink, frame, skb{Ifindex: uint32(n.uplink)}), refused(frame, reason.SpoofedSource))
	})
}

// patchedAt is a copy of the frame with another byte.
func patchedAt(frame []byte, at int, with byte) []byte {
	f := append([]byte{}, frame...)
	f[at] = with
	return f
}

// TestICMPErrorForged: packets to a VIP are translated before anybody else meets them, so
// an error that quotes one to its sender here is made up. Go gets it, to drop and count it.
func TestICMPErrorForged(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	other, uplink := testHook{n.o.bpf.FromPod, n.other}, testHook{n.o.bpf.FromUplink, n.uplink}
	toVIP := func(src string) []byte { return from(src, "10.96.0.1", 17, udp(2000, 80)) }
	toVIP6 := from("fd00::2", "fd96::1", 6, tcp(2000, 80))
	for _, c := range []struct {
		does  string
		at    testHook
		port  uint16 // that it is punted from; 0: it passes
		frame []byte
	}{
		{"from a pod to another", other, otherID, about("10.1.0.3", "10.1.0.2", 3, 4, toVIP("10.1.0.2"))},
		{"from a pod to another, IPv6", other, otherID, about("fd00::3", "fd00::2", 2, 0, toVIP6)},
		{"from a pod to another, about a port that is claimed alone", other, otherID, about("10.1.0.3", "10.1.0.2", 3, 4, from("10.1.0.2", "10.96.0.2", 17, udp(2000, 53)))},
		{"from a pod to the node", other, otherID, about("10.1.0.3", "10.1.0.1", 3, 4, toVIP("10.1.0.1"))},
		{"from the wire to a pod", uplink, uplinkID, about("198.51.100.1", "10.1.0.2", 3, 4, toVIP("10.1.0.2"))},
		{"from the wire to a pod, IPv6", uplink, uplinkID, about("2001:db8::1", "fd00::2", 2, 0, toVIP6)},

		{"to the node from the wire, where it may have sent by another way", uplink, 0, about("198.51.100.1", "10.1.0.1", 3, 4, toVIP("10.1.0.1"))},
		{"to a client that lives elsewhere", uplink, 0, about("198.51.100.1", "192.0.2.9", 3, 4, toVIP("192.0.2.9"))},
		{"about another port of an address of which one is claimed", other, 0, about("10.1.0.3", "10.1.0.2", 3, 4, from("10.1.0.2", "10.96.0.2", 17, udp(53, 54)))},
		{"about the claimed port in another protocol", other, 0, about("10.1.0.3", "10.1.0.2", 3, 4, from("10.1.0.2", "10.96.0.2", 6, tcp(2000, 53)))},
		{"to somebody who did not send what is quoted", other, 0, about("10.1.0.3", "10.1.0.2", 3, 4, toVIP("10.1.0.9"))},
		{"what the node's own stack says", testHook{n.o.bpf.ToPort, n.pod}, 0, about("10.1.0.1", "10.1.0.2", 3, 4, toVIP("10.1.0.2"))},
	} {
		t.Run(c.does, func(t *testing.T) {
			want := untouched(c.frame)
			if c.port != 0 {
				want = punted(c.frame, c.port, packet.PuntVIP)
			}
			check(t, n.run(t, c.at.program, c.frame, skb{Ifindex: uint32(c.at.ifindex)}), want)
		})
	}
	t.Run("in another's name it goes nowhere", func(t *testing.T) {
		frame := about("10.1.0.2", "10.1.0.2", 3, 4, toVIP("10.1.0.2"))
		check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), refused(frame, reason.SpoofedSource))
	})
}
