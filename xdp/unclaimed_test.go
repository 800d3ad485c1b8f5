package xdp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

const (
	fragLater = 0x2001 // fragment field: offset 8, more follow
	fragFirst = 0x2000 // offset 0, more follow
)

// vlan puts a tag between the addresses and the type of a frame.
func vlan(tag uint16, frame []byte) []byte {
	return join(frame[:12], []byte{byte(tag >> 8), byte(tag), 0, 100}, frame[12:])
}

// noise is every class of packet that no hook of a port may claim.
func noise() map[string][]byte {
	vip := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	badVersion, shortHeader, mixed := append([]byte{}, vip...), append([]byte{}, vip...), append([]byte{}, vip...)
	badVersion[14], shortHeader[14], mixed[12], mixed[13] = 0x55, 0x44, 0x86, 0xdd
	return map[string][]byte{
		"TCP from pod to pod passes":                                      from("10.1.0.2", "10.1.0.3", 6, tcp(1000, 80)),
		"UDP from pod to pod passes":                                      from("10.1.0.2", "10.1.0.3", 17, udp(1000, 53)),
		"SCTP from pod to pod passes":                                     from("10.1.0.2", "10.1.0.3", 132, tcp(1000, 80)),
		"TCP from pod to pod over IPv6 passes":                            from("fd00::2", "fd00::3", 6, tcp(1000, 80)),
		"UDP from pod to pod over IPv6 passes":                            from("fd00::2", "fd00::3", 17, udp(1000, 53)),
		"a ping from pod to pod passes":                                   from("10.1.0.2", "10.1.0.3", 1, []byte{8, 0, 0, 0, 0, 1, 0, 1}),
		"a ping from pod to pod over IPv6 passes":                         from("fd00::2", "fd00::3", 58, []byte{128, 0, 0, 0, 0, 1, 0, 1}),
		"an ICMP error from pod to pod passes":                            from("10.1.0.2", "10.1.0.3", 1, join([]byte{3, 3, 0, 0, 0, 0, 0, 0}, vip[14:42])),
		"ssh to the node passes":                                          from("10.1.0.2", "10.1.0.1", 6, tcp(1000, 22)),
		"an address in the service range that no claim covers passes":     from("10.1.0.2", "10.96.0.77", 6, tcp(1000, 80)),
		"TCP to the number of a claimed UDP port passes":                  from("10.1.0.2", "10.96.0.2", 6, tcp(1000, 53)),
		"UDP to a port beside the claimed one passes":                     from("10.1.0.2", "10.96.0.2", 17, udp(1000, 54)),
		"a VIP as source does not make a packet ours":                     from("10.96.0.1", "10.1.0.3", 6, tcp(80, 1000)),
		"a VIP of another network passes":                                 from("10.1.0.2", "10.96.7.7", 6, tcp(1000, 80)),
		"a flow's tuple in another network passes":                        from("10.1.7.3", "10.1.7.2", 17, udp(5, 6)),
		"an ARP request passes":                                           ethernet(0x0806, make([]byte, 46)),
		"a neighbour solicitation passes":                                 ip6("fd00::2", "ff02::1:ff00:3", 58, join([]byte{135, 0, 0, 0, 0, 0, 0, 0}, addr("fd00::3"))),
		"an MLD report behind a hop-by-hop header passes":                 ip6("fe80::1", "ff02::16", 0, join([]byte{58, 0, 5, 2, 0, 0, 1, 0}, []byte{143, 0, 0, 0, 0, 0, 0, 0})),
		"a DHCP broadcast passes":                                         from("0.0.0.0", "255.255.255.255", 17, udp(68, 67)),
		"LLDP passes":                                                     ethernet(0x88cc, make([]byte, 46)),
		"an 802.3 frame with a length instead of a type passes":           ethernet(38, make([]byte, 46)),
		"a frame with a VLAN tag passes to the VLAN's device":             vlan(0x8100, vip),
		"a frame with a service tag passes":                               vlan(0x88a8, vip),
		"IPv4 of version 5 passes":                                        badVersion,
		"an IPv4 header shorter than 20 bytes passes":                     shortHeader,
		"IPv4 that calls itself IPv6 passes":                              mixed,
		"IPv6 to the v4-mapped form of a VIP passes":                      ip6("fd00::2", "::ffff:10.96.0.1", 6, tcp(1000, 80)),
		"IPv6 from a v4-mapped address to a VIP passes":                   ip6("::ffff:10.1.0.2", "fd96::1", 6, tcp(1000, 80)),
		"IPv4 with options from pod to pod passes":                        ip4("10.1.0.2", "10.1.0.3", 6, 0, []byte{7, 3, 4, 0}, tcp(1000, 80)),
		"the first fragment from pod to pod passes":                       ip4("10.1.0.2", "10.1.0.3", 17, fragFirst, nil, udp(1000, 53)),
		"a later fragment from pod to pod passes":                         ip4("10.1.0.2", "10.1.0.3", 17, fragLater, nil, []byte{1}),
		"a later fragment whose payload looks like a flow's ports passes": ip4("10.1.0.3", "10.1.0.2", 17, fragLater, nil, udp(53, 2000)),
		"IPv6 with extension headers from pod to pod passes":              ip6("fd00::2", "fd00::3", 0, join([]byte{60, 0, 1, 4, 0, 0, 0, 0}, []byte{6, 0, 1, 4, 0, 0, 0, 0}, tcp(1000, 80))),
		"an IPv6 later fragment passes":                                   ip6("fd00::3", "fd00::2", 44, join([]byte{17, 0, 0, 9, 0, 0, 0, 1}, udp(53, 2000))),
		"a tuple behind a routing header with segments left passes":       ip6("fd00::3", "fd00::2", 43, join([]byte{17, 0, 0, 1, 0, 0, 0, 0}, udp(53, 2000))),
		"ESP passes":            from("10.1.0.2", "10.1.0.3", 50, make([]byte, 16)),
		"no next header passes": ip6("fd00::2", "fd00::3", 59, nil),
		"a tuple that Go gave to the kernel passes":                         from("10.1.0.3", "10.1.0.2", 17, udp(54, 2000)),
		"the same tuple with the ports the other way round passes":          from("10.1.0.3", "10.1.0.2", 17, udp(2000, 53)),
		"a flow's tuple under another protocol passes":                      from("10.1.0.3", "10.1.0.2", 6, tcp(53, 2000)),
		"a tuple that differs from a flow's in the high words alone passes": from("fd01::3", "fd00::2", 17, udp(53, 2000)),
	}
}

// TestUnclaimed: what is not Lace's leaves every hook of a port as it came, and is counted
// as left to the kernel, nothing else.
func TestUnclaimed(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insert(t, pair{client: "10.1.0.2", clientPort: 2000, vip: "10.96.0.1", vipPort: 53, backend: "10.1.0.3", backendPort: 53, protocol: 17}, conntrack.ModeGo)
	n.insert(t, pair{client: "10.1.0.2", clientPort: 2000, vip: "10.96.0.1", vipPort: 54, backend: "10.1.0.3", backendPort: 54, protocol: 17}, conntrack.ModePass)
	n.insert(t, pair{client: "fd00::2", clientPort: 2000, vip: "fd96::1", vipPort: 53, backend: "fd00::3", backendPort: 53, protocol: 17}, conntrack.ModeGo)
	n.insert(t, pair{client: "10.1.7.2", clientPort: 6, vip: "10.96.7.7", vipPort: 7, backend: "10.1.7.3", backendPort: 5, protocol: 17, network: 7}, conntrack.ModeGo)
	for _, whose := range []struct {
		name     string
		backends filter
	}{{"every address may be a backend's", everybody()}, {"no address is a backend's", filter{}}} {
		must(t, n.o.setBackends(whose.backends))
		for name, hook := range n.hooks() {
			for sentence, frame := range noise() {
				if whose.backends != (filter{}) && strings.Contains(sentence, "fragment") {
					continue // those may be a reply's
				}
				t.Run(whose.name+", "+name+": "+sentence, func(t *testing.T) {
					check(t, n.run(t, hook.program, frame, skb{Ifindex: uint32(hook.ifindex)}), untouched(frame))
				})
			}
		}
	}
}

// TestOnlyBackendsAreLookedUp: a flow is looked for when one end of the packet may be a claimed
// address or a backend, and not otherwise.
func TestOnlyBackendsAreLookedUp(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insert(t, pair{client: "10.1.0.2", clientPort: 2000, vip: "10.96.0.1", vipPort: 53, backend: "10.1.0.3", backendPort: 53, protocol: 17}, conntrack.ModeGo)
	reply := from("10.1.0.3", "10.1.0.2", 17, udp(53, 2000))
	must(t, n.o.SetBackends(nil))
	for name, hook := range n.hooks() {
		t.Run(name+" takes no notice of who is no backend", func(t *testing.T) {
			check(t, n.run(t, hook.program, reply, skb{Ifindex: uint32(hook.ifindex)}), untouched(reply))
		})
	}
	must(t, n.o.WidenBackends([]packet.Addr{mapped("10.1.0.3")}))
	check(t, n.run(t, n.o.bpf.FromPod, reply, skb{Ifindex: uint32(n.other)}), punted(reply, otherID, 0))
	check(t, n.run(t, n.o.bpf.ToPort, reply, skb{Ifindex: uint32(n.pod)}), puntedOut(reply, podID))
}

// testHook is a program on one of the node's devices.
type testHook struct {
	program *ebpf.Program
	ifindex int
}

func (n *node) hooks() map[string]testHook {
	return map[string]testHook{
		"pod ingress":    {n.o.bpf.FromPod, n.pod},
		"uplink ingress": {n.o.bpf.FromUplink, n.uplink},
		"pod egress":     {n.o.bpf.ToPort, n.pod},
		"uplink egress":  {n.o.bpf.ToPort, n.uplink},
	}
}

// TestShort: frames of every length pass every hook unharmed, whatever they were about to
// be.
func TestShort(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	must(t, n.o.SetBackends(nil)) // whose fragments are claimed
	whole := map[string][]byte{
		"IPv4 TCP":          from("10.1.0.2", "10.1.0.3", 6, join(tcp(1, 2), make([]byte, 40))),
		"IPv4 with options": ip4("10.1.0.2", "10.1.0.3", 6, 0, make([]byte, 40), tcp(1, 2)),
		"IPv6 UDP":          from("fd00::2", "fd00::3", 17, join(udp(1, 2), make([]byte, 40))),
		"IPv6 extensions":   ip6("fd00::2", "fd00::3", 0, join([]byte{43, 0, 0, 0, 0, 0, 0, 0}, []byte{44, 0, 0, 0, 0, 0, 0, 0}, []byte{17, 0, 0, 1, 0, 0, 0, 0}, udp(1, 2))),
		"ARP":               ethernet(0x0806, make([]byte, 80)),
		"VLAN":              vlan(0x8100, from("10.1.0.2", "10.96.0.1", 6, join(tcp(1, 2), make([]byte, 40)))),
	}
	for name, hook := range n.hooks() {
		for kind, frame := range whole {
			t.Run(fmt.Sprintf("%s: %s cut anywhere passes", name, kind), func(t *testing.T) {
				for size := shortest(t, hook.program, frame); size <= min(80, len(frame)); size++ {
					check(t, n.run(t, hook.program, frame[:size:size], skb{Ifindex: uint32(hook.ifindex)}), untouched(frame[:size]))
				}
			})
		}
	}
}

// shortest is the number of bytes of a frame from which on this kernel runs it in a test:
// newer ones want the whole IP header. Shorter ones are sent over a wire, see TestWire.
func shortest(t *testing.T, p *ebpf.Program, frame []byte) int {
	for size := 1; size <= 54; size++ {
		if _, err := p.Run(&ebpf.RunOptions{Data: frame[:size:size]}); err == nil {
			return size
		}
	}
	t.Fatal("no test run of up to 54 bytes is possible")
	return 0
}

// TestShortClaimed: a packet to a VIP is claimed as soon as its addresses are there, so that
// what is cut off behind them is counted by Go and not leaked.
func TestShortClaimed(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	for name, c := range map[string]struct {
		frame  []byte
		header int
	}{
		"IPv4": {from("10.1.0.2", "10.96.0.1", 6, join(tcp(1, 2), make([]byte, 40))), 34},
		"IPv6": {from("fd00::2", "fd96::1", 17, join(udp(1, 2), make([]byte, 40))), 54},
	} {
		t.Run(name+" to a VIP is claimed from its last address byte on", func(t *testing.T) {
			for size := shortest(t, n.o.bpf.FromPod, c.frame); size <= 80; size++ {
				f := c.frame[:size:size]
				want := punted(f, podID, 1)
				if size < c.header {
					want = untouched(f)
				}
				check(t, n.run(t, n.o.bpf.FromPod, f, skb{Ifindex: uint32(n.pod)}), want)
			}
		})
	}
}

// TestForeignDevice: a hook on a device that is no port lets everything by.
func TestForeignDevice(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	frame := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	for name, hook := range n.hooks() {
		got := n.run(t, hook.program, frame, skb{Ifindex: 1})
		if got.Verdict != next || got.Counts[reason.NotClaimed.String()].Packets != 1 {
			t.Errorf("%s on lo: %+v, want the packet to pass", name, got)
		}
	}
}
