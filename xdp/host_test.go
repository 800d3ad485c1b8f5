package xdp

import (
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestHost: out of lace0 goes what is claimed and sent by the node itself. It stays on its
// way, for that way is the trunk; the rest is dropped, for it has nowhere else to go.
func TestHost(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insert(t, pair{client: "10.1.0.1", clientPort: 2000, vip: "10.96.0.9", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}, conntrack.ModeGo)
	n.insert(t, pair{client: "10.1.0.1", clientPort: 2001, vip: "10.96.0.9", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}, conntrack.ModePass)
	toGo := func(frame []byte, why byte) outcome {
		o := punted(frame, table.HostPort, why)
		o.Verdict = next
		return o
	}
	lost := func(frame []byte, r reason.Reason) outcome {
		return outcome{dropped, frame, 0, once(frame, r.String())}
	}
	asIs := func(frame []byte) outcome { return outcome{next, frame, 0, map[string]Count{}} }

	syn, syn6 := from("10.1.0.1", "10.96.0.1", 6, tcp(1000, 80)), from("fd00::1", "fd96::1", 6, tcp(1000, 80))
	established := from("10.1.0.1", "10.96.0.9", 6, tcp(2000, 80))
	passed := from("10.1.0.1", "10.96.0.9", 6, tcp(2001, 80))
	ping := from("10.1.0.1", "10.96.0.1", 1, []byte{8, 0, 0, 0, 0, 1, 0, 1})
	fragment := ip4("10.1.0.1", "10.96.0.1", 17, fragLater, nil, []byte{1})
	nobody, nobody6 := from("10.1.0.1", "10.96.0.77", 6, tcp(1000, 80)), from("fd00::1", "fd96::77", 17, udp(1, 2))
	fromPod, fromNowhere := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80)), from("198.51.100.1", "10.96.0.1", 6, tcp(1000, 80))
	mld := ip6("::", "ff02::16", 0, join([]byte{58, 0, 5, 2, 0, 0, 1, 0}, []byte{143, 0, 0, 0, 0, 0, 0, 0}))
	multicast, broadcast := from("10.1.0.1", "224.0.0.22", 2, make([]byte, 8)), from("10.1.0.1", "255.255.255.255", 17, udp(68, 67))
	arp, tagged := ethernet(0x0806, make([]byte, 46)), vlan(0x8100, syn)
	broken := append([]byte{}, syn...)
	broken[14] = 0x42
	fromOther, injected := onTrunk(fromPod, 0x50, packet.PuntVIP, podID), onTrunk(syn, 0x49, 0, podID)

	for does, c := range map[string]struct {
		frame []byte
		want  outcome
	}{
		"a SYN from the node to a VIP goes to Go":                        {syn, toGo(syn, packet.PuntVIP)},
		"a SYN from the node to an IPv6 VIP goes to Go":                  {syn6, toGo(syn6, packet.PuntVIP)},
		"a packet of the node's flow goes to Go, claim or not":           {established, toGo(established, packet.PuntFlow)},
		"a ping from the node to a VIP goes to Go":                       {ping, toGo(ping, packet.PuntVIP)},
		"a fragment from the node to a VIP goes to Go":                   {fragment, toGo(fragment, packet.PuntVIP)},
		"a tuple that Go gave to the kernel has no other way":            {passed, lost(passed, reason.UnallocatedVIP)},
		"an address that no Service has is refused":                      {nobody, lost(nobody, reason.UnallocatedVIP)},
		"an IPv6 address that no Service has is refused":                 {nobody6, lost(nobody6, reason.UnallocatedVIP)},
		"a pod's packet that the node forwards to a VIP is no node's":    {fromPod, refused(fromPod, reason.SpoofedSource)},
		"an address from nowhere that is forwarded to a VIP is refused":  {fromNowhere, refused(fromNowhere, reason.SpoofedSource)},
		"MLD that IPv6 emits on every device is dropped as foreign":      {mld, lost(mld, reason.ForeignFrame)},
		"IPv4 multicast is dropped as foreign":                           {multicast, lost(multicast, reason.ForeignFrame)},
		"IPv4 broadcast is dropped as foreign":                           {broadcast, lost(broadcast, reason.ForeignFrame)},
		"ARP is dropped as foreign":                                      {arp, lost(arp, reason.ForeignFrame)},
		"a VLAN tag is dropped as foreign":                               {tagged, lost(tagged, reason.ForeignFrame)},
		"an IPv4 header that contradicts itself is dropped as malformed": {broken, lost(broken, reason.Malformed)},
		"what another hook punted passes as it is":                       {fromOther, asIs(fromOther)},
		"the mark of a frame from Go means nothing on the way out":       {injected, toGo(injected, packet.PuntVIP)},
	} {
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, n.o.bpf.FromHost, c.frame, skb{Ifindex: 1}), c.want)
		})
	}
}

// TestHostNetwork: the node's packets belong to the network of the host port.
func TestHostNetwork(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	ports := n.ports()
	ports[0].Network = 7
	must(t, n.o.SyncPorts(ports))
	must(t, n.o.SyncSources([]table.Address{{Addr: mapped("10.1.7.1"), Network: 7, Port: table.HostPort}}))
	frame := from("10.1.7.1", "10.96.7.7", 6, tcp(1, 2))
	want := punted(frame, table.HostPort, packet.PuntVIP)
	want.Verdict = next
	check(t, n.run(t, n.o.bpf.FromHost, frame, skb{Ifindex: 1}), want)
}

// TestHostFragments: of an alias of the node's own address single ports are claimed, which
// later fragments do not have; they go to Go all the same. Those to nobody do not.
func TestHostFragments(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	if err := n.o.SyncClaims([]Claim{{Addr: packet.AddrFrom(netip.MustParseAddr("169.254.76.7")), Protocol: 17, Port: 30080}}); err != nil {
		t.Fatal(err)
	}
	later, nobody := ip4("10.1.0.1", "169.254.76.7", 17, fragLater, nil, []byte{1}), ip4("10.1.0.1", "169.254.76.8", 17, fragLater, nil, []byte{1})
	want := punted(later, table.HostPort, packet.PuntVIP)
	want.Verdict = next
	check(t, n.run(t, n.o.bpf.FromHost, later, skb{Ifindex: 1}), want)
	check(t, n.run(t, n.o.bpf.FromHost, nobody, skb{Ifindex: 1}), outcome{dropped, nobody, 0, once(nobody, reason.UnallocatedVIP.String())})
	whole := from("10.1.0.1", "169.254.76.7", 17, udp(1000, 30081))
	check(t, n.run(t, n.o.bpf.FromHost, whole, skb{Ifindex: 1}), outcome{dropped, whole, 0, once(whole, reason.UnallocatedVIP.String())})
}
