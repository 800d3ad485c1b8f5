package xdp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// sum4 fills in the checksum of IPv4 UDP, as a pod without offload would.
func sum4(frame []byte) []byte {
	binary.BigEndian.PutUint16(frame[40:], ^transportSum(frame))
	return frame
}

// transportSum sums UDP and its pseudo header; 0xffff for a correct checksum.
func transportSum(frame []byte) uint16 {
	var pseudo []byte
	l4 := 34
	if frame[12] == 0x86 {
		l4 = 54
		pseudo = append(pseudo, frame[22:54]...)
	} else {
		pseudo = append(pseudo, frame[26:34]...)
	}
	body := frame[l4 : l4+int(binary.BigEndian.Uint16(frame[l4+4:]))]
	pseudo = append(pseudo, 0, 17)
	pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(body)))
	pseudo = append(pseudo, body...)
	if len(pseudo)%2 == 1 {
		pseudo = append(pseudo, 0)
	}
	return ones(pseudo)
}

// TestPuntOverWire: what pod and outside send to a VIP arrives at Go byte for byte, but for
// the Ethernet addresses.
func TestPuntOverWire(t *testing.T) {
	w := newWire(t)
	for does, c := range map[string]struct {
		at    *end
		port  uint16
		frame []byte
	}{
		"from a pod":              {w.toPod, podID, sum4(from("10.1.0.2", "10.96.0.1", 17, udp(1000, 53)))},
		"from a pod over IPv6":    {w.toPod, podID, from("fd00::2", "fd96::1", 6, tcp(1001, 80))},
		"from outside":            {w.toOut, uplinkID, from("192.0.2.9", "10.96.0.1", 6, tcp(1002, 80))},
		"a last fragment":         {w.toPod, podID, ip4("10.1.0.2", "10.96.0.1", 17, 0x0001, nil, []byte{9})},
		"a frame of the full MTU": {w.toPod, podID, from("10.1.0.2", "10.96.0.1", 6, join(tcp(1003, 80), make([]byte, 1460)))},
	} {
		t.Run(does, func(t *testing.T) {
			c.at.send(t, c.frame, len(c.frame))
			w.receiveExactly(t, onTrunk(c.frame, 0x50, packet.PuntVIP, c.port))
		})
	}
}

// TestQueue: both directions of a flow come to one worker, and the flows to all workers.
func TestQueue(t *testing.T) {
	w := newWire(t)
	var used [2]int
	for i := range uint16(40) {
		p := pair{client: "10.1.0.2", clientPort: 3000 + i, vip: "10.96.0.1", vipPort: 80, backend: "192.0.2.9", backendPort: 8080, protocol: 6}
		w.insert(t, p, conntrack.ModeGo)
		there := from(p.client, p.vip, p.protocol, tcp(p.clientPort, p.vipPort))
		back := from(p.backend, p.client, p.protocol, tcp(p.backendPort, p.clientPort))
		w.toPod.send(t, there, len(there))
		first := w.receiveExactly(t, onTrunk(there, 0x50, packet.PuntFlow, podID))
		w.toOut.send(t, back, len(back))
		if second := w.receiveExactly(t, onTrunk(back, 0x50, packet.PuntFlow, uplinkID)); second != first {
			t.Errorf("flow %d: queue %d there, %d back", i, first, second)
		}
		used[first]++
	}
	if used[0] < 8 || used[1] < 8 {
		t.Errorf("40 flows are spread %v over two queues", used)
	}
}

// TestPassOverWire: short frames, tags that the kernel takes off, ARP and the like pass and
// are claimed by nobody.
func TestPassOverWire(t *testing.T) {
	w := newWire(t)
	vip := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	var frames [][]byte
	for size := 14; size < 34; size++ {
		frames = append(frames, vip[:size])
	}
	vip6 := from("fd00::2", "fd96::1", 6, tcp(1000, 80))
	for size := 14; size < 54; size++ {
		frames = append(frames, vip6[:size])
	}
	frames = append(frames, vlan(0x8100, vip), vlan(0x88a8, vip6), vlan(0x8100, vip)[:20], ethernet(0x0806, make([]byte, 46)))
	before, err := w.o.Counters()
	must(t, err)
	passed := countBehind(t, w.pod)
	for _, f := range frames {
		w.toPod.send(t, f, len(f))
	}
	for end := time.Now().Add(patience); passed() < uint64(len(frames)); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d frames passed", passed(), len(frames))
		}
	}
	after, err := w.o.Counters()
	must(t, err)
	if c, ok := grown(before, after)["claimed"]; ok {
		t.Errorf("claimed: %+v", c)
	}
}

// TestScatteredFrame: headers that the kernel keeps in another place than the beginning of
// the frame are read all the same; of what the trunk cannot carry the beginning is punted.
func TestScatteredFrame(t *testing.T) {
	w := newWire(t)
	w.insert(t, pair{client: "192.0.2.9", clientPort: 5, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.2", backendPort: 8080, protocol: 17}, conntrack.ModeGo)
	large := make([]byte, 5000)
	for does, frame := range map[string][]byte{
		"to a VIP":          from("10.1.0.2", "10.96.0.1", 17, join(udp(1000, 53), large)),
		"to an IPv6 VIP":    from("fd00::2", "fd96::1", 17, join(udp(1000, 53), large)),
		"a reply, by ports": from("10.1.0.2", "192.0.2.9", 17, join(udp(8080, 5), large)),
		"behind IP options": ip4("10.1.0.2", "192.0.2.9", 17, 0, make([]byte, 8), join(udp(8080, 5), large)),
		"behind hop-by-hop": ip6("fd00::2", "fd96::1", 0, join([]byte{17, 0, 1, 4, 0, 0, 0, 0}, udp(1000, 53), large)),
	} {
		t.Run(does, func(t *testing.T) {
			before, err := w.o.Counters()
			must(t, err)
			w.toPod.send(t, frame, 14)
			w.grows(t, before, once(frame, "claimed", "punted"))
		})
	}
}

// socket is a UDP socket of the node.
func socket(t *testing.T, local string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(local)))
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func toPort(port uint16) func([]byte) bool {
	return func(b []byte) bool {
		l4 := 34
		if b[12] == 0x86 {
			l4 = 54
		}
		return len(b) > l4+4 && binary.BigEndian.Uint16(b[l4+2:]) == port
	}
}

// TestNodeOverWire: what the node's sockets send to VIPs comes to Go whole: with its
// checksums, which the kernel had left to the device, and cut into segments.
func TestNodeOverWire(t *testing.T) {
	w := newWire(t)
	for does, c := range map[string]struct {
		local, vip string
		port       uint16
		size       int
		segment    int
		frames     int
	}{
		"a datagram":                      {"10.1.0.1:0", "10.96.0.1", 53, 100, 0, 1},
		"a datagram over IPv6":            {"[fd00::1]:0", "fd96::1", 54, 101, 0, 1},
		"a large buffer in segments":      {"10.1.0.1:0", "10.96.0.1", 55, 3500, 1000, 4},
		"a large buffer in IPv6 segments": {"[fd00::1]:0", "fd96::1", 56, 3500, 1000, 4},
	} {
		t.Run(does, func(t *testing.T) {
			s := socket(t, c.local)
			if c.segment > 0 {
				raw, err := s.SyscallConn()
				must(t, err)
				must(t, raw.Control(func(fd uintptr) {
					must(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, c.segment))
				}))
			}
			_, err := s.WriteToUDPAddrPort(make([]byte, c.size), netip.AddrPortFrom(netip.MustParseAddr(c.vip), c.port))
			must(t, err)
			for range c.frames {
				b, _ := w.receive(t, toPort(c.port))
				if p, ok := packet.ReadPunt(b); !ok || p != (packet.Punt{Port: table.HostPort, Why: packet.PuntVIP}) {
					t.Errorf("the frame is marked %+v, %v", p, ok)
				}
				if got := transportSum(b); got != 0xffff {
					t.Errorf("the checksum adds up to %#x; the kernel did not finish it: %x", got, b)
				}
				if len(b) > 1514 {
					t.Errorf("a frame of %d bytes came through", len(b))
				}
			}
		})
	}
}

// TestReplyOverWire: what a backend on the node itself answers is met on its way out, and
// what Go lets go on arrives as the node had sent it.
func TestReplyOverWire(t *testing.T) {
	w := newWire(t)
	w.insert(t, pair{client: "10.1.0.2", clientPort: 4000, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.1", backendPort: 4001, protocol: 17}, conntrack.ModeGo)
	w.insert(t, pair{client: "192.0.2.9", clientPort: 4000, vip: "10.96.0.1", vipPort: 80, backend: "192.0.2.1", backendPort: 4002, protocol: 17}, conntrack.ModeGo)
	for does, c := range map[string]struct {
		local, client string
		port          uint16
		at            *end
		src           [6]byte
	}{
		"to a pod":       {"10.1.0.1:4001", "10.1.0.2:4000", podID, w.toPod, podGateway},
		"to the outside": {"192.0.2.1:4002", "192.0.2.9:4000", uplinkID, w.toOut, uplinkMAC},
	} {
		t.Run(does, func(t *testing.T) {
			_, err := socket(t, c.local).WriteToUDPAddrPort([]byte("reply"), netip.MustParseAddrPort(c.client))
			must(t, err)
			b, _ := w.receive(t, toPort(4000))
			if p, ok := packet.ReadPunt(b); !ok || p != (packet.Punt{Port: c.port, Why: packet.PuntFlow, Egress: true}) {
				t.Errorf("the frame is marked %+v, %v", p, ok)
			}
			if got := transportSum(b); got != 0xffff {
				t.Errorf("the checksum adds up to %#x", got)
			}
			packet.WriteInject(b, packet.Resume, c.port)
			w.inject(t, b)
			c.at.expect(t, withMACs(b, c.at.mac, c.src))
		})
	}
}

// TestDirectOverWire: what Go delivers arrives with the addresses of the last hop, although
// its tuple is that of a flow and would be claimed anywhere else.
func TestDirectOverWire(t *testing.T) {
	w := newWire(t)
	w.insert(t, pair{client: "10.1.0.2", clientPort: 6000, vip: "10.96.0.1", vipPort: 80, backend: "192.0.2.9", backendPort: 6001, protocol: 17}, conntrack.ModeGo)
	w.insert(t, pair{client: "192.0.2.9", clientPort: 6000, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.2", backendPort: 6001, protocol: 17}, conntrack.ModeGo)
	for does, c := range map[string]struct {
		frame []byte
		port  uint16
		at    *end
		src   [6]byte
	}{
		"to a pod":       {sum4(from("192.0.2.9", "10.1.0.2", 17, udp(6001, 6000))), podID, w.toPod, podGateway},
		"to the outside": {sum4(from("10.1.0.2", "192.0.2.9", 17, udp(6001, 6000))), uplinkID, w.toOut, uplinkMAC},
	} {
		t.Run(does, func(t *testing.T) {
			f := onTrunk(c.frame, 0x49, 0, c.port)
			w.inject(t, f)
			c.at.expect(t, withMACs(c.frame, c.at.mac, c.src))
		})
	}
}

// TestStackOverWire: what Go gives to the node reaches its sockets whatever the node's
// reverse path filter: as if from the port on which it came, or from lace0 with a VIP as
// source.
func TestStackOverWire(t *testing.T) {
	w := newWire(t)
	w.insert(t, pair{client: "10.1.0.2", clientPort: 7000, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.1", backendPort: 7001, protocol: 17}, conntrack.ModeGo)
	for _, filter := range []string{"0", "1", "2"} {
		for _, device := range []string{"all", "tpod", "tup.7"} {
			must(t, sysctl("net/ipv4/conf/"+device+"/rp_filter", filter))
		}
		for does, c := range map[string]struct {
			how     packet.Inject
			port    uint16
			src     string
			srcPort uint16
			dst     string
		}{
			"a pod's packet for a backend on the node": {packet.Stack, podID, "10.1.0.2", 7000, "10.1.0.1:7001"},
			"the outside's packet":                     {packet.Stack, uplinkID, "192.0.2.9", 7000, "192.0.2.1:7002"},
			"a reply to the node's own client":         {packet.Direct, table.HostPort, "10.96.0.1", 53, "10.1.0.1:7003"},
		} {
			t.Run(fmt.Sprintf("%s, rp_filter %s", does, filter), func(t *testing.T) {
				to := netip.MustParseAddrPort(c.dst)
				s := socket(t, c.dst)
				f := sum4(from(c.src, to.Addr().String(), 17, udp(c.srcPort, to.Port())))
				w.inject(t, onTrunk(f, 0x49, byte(c.how), c.port))
				must(t, s.SetReadDeadline(time.Now().Add(patience)))
				b := make([]byte, 100)
				n, sender, err := s.ReadFromUDPAddrPort(b)
				if err != nil || string(b[:n]) != "lace" || sender != netip.AddrPortFrom(netip.MustParseAddr(c.src), c.srcPort) {
					t.Errorf("received %q from %v (%v)", b[:n], sender, err)
				}
			})
		}
	}
}

// TestDeadWorker: without a socket on its queue a punted packet is counted as lost for want
// of a worker; what is not claimed still passes.
func TestDeadWorker(t *testing.T) {
	w := newWire(t)
	for _, s := range w.sockets {
		must(t, s.Close())
	}
	before, err := w.o.Counters()
	must(t, err)
	vip, other := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80)), from("10.1.0.2", "10.1.0.9", 6, tcp(1000, 80))
	w.toPod.send(t, vip, len(vip))
	w.toPod.send(t, other, len(other))
	w.grows(t, before, once(vip, "claimed", "punted", reason.NoWorker.String(), reason.NotClaimed.String()))
}

// TestHousekeeping: the multicast that IPv6 sends on lace0 stays there, counted as foreign.
func TestHousekeeping(t *testing.T) {
	w := newWire(t)
	before, err := w.o.Counters()
	must(t, err)
	s := socket(t, "[::]:0")
	raw, err := s.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		group := unix.IPv6Mreq{Multiaddr: netip.MustParseAddr("ff15::1ace").As16(), Interface: uint32(w.trunk.Lace0)}
		must(t, unix.SetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &group))
	}))
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		now, err := w.o.Counters()
		must(t, err)
		got := grown(before, now)
		if _, punted := got["punted"]; punted {
			t.Fatalf("housekeeping was punted: %v", got)
		}
		if got[reason.ForeignFrame.String()].Packets > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no multicast was counted: %v", got)
		}
	}
}
