package attach

import (
	"fmt"
	"net/netip"
	"testing"

	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

// BenchmarkDerive is the derivation on a node with 250 pods of either style, in memory.
func BenchmarkDerive(b *testing.B) {
	for _, style := range []string{"point-to-point", "bridge"} {
		b.Run(style, func(b *testing.B) {
			v := crowded(style, 250)
			s := newIDs(nil)
			b.ReportAllocs()
			for b.Loop() {
				if a, _ := derive(v, s, ranges); len(a.Ports) != 251 {
					b.Fatalf("%d ports, want 251", len(a.Ports))
				}
			}
		})
	}
}

// crowded is the view of a node with an uplink and so many pods.
func crowded(style string, pods int) netdev.View {
	v := netdev.View{
		Links: []netdev.Link{
			{Index: 1, Name: "eth0", MTU: 1500, Up: true, Ethernet: true},
			{Index: 2, Name: "cni0", Kind: netdev.KindBridge, MTU: 1500, Up: true, Ethernet: true},
		},
		Addresses: []netdev.Address{
			{Device: 1, Prefix: netip.MustParsePrefix("172.30.0.11/24")},
			{Device: 2, Prefix: netip.MustParsePrefix("10.244.0.1/16")},
		},
		Routes: []netdev.Route{{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("172.30.0.1"), Device: 1, Type: netdev.Unicast}},
		Peers:  make(map[int]netdev.Peer),
	}
	for i := range pods {
		index := 10 + i
		addr := netip.AddrFrom4([4]byte{10, 244, byte(1 + i/200), byte(2 + i%200)})
		l := netdev.Link{Index: index, Name: fmt.Sprintf("veth%d", i), Kind: netdev.KindVeth, MTU: 1500, Up: true, Ethernet: true, Peer: 2, PeerNamespace: i}
		at := 1
		if style == "bridge" {
			l.Master, at = 2, 2
		}
		v.Links = append(v.Links, l)
		v.Peers[index] = netdev.Peer{MAC: peerMAC(index), Up: true, Addresses: []netip.Addr{addr}}
		v.Neighbours = append(v.Neighbours, netdev.Neighbour{Device: at, Addr: addr, MAC: peerMAC(index)})
		if style == "bridge" {
			v.Stations = append(v.Stations, netdev.Station{Bridge: 2, Port: index, MAC: peerMAC(index)})
			continue
		}
		v.Routes = append(v.Routes, netdev.Route{Destination: netip.PrefixFrom(addr, 32), Device: index, Type: netdev.Unicast})
	}
	return v
}

// BenchmarkRead is the reading of a real node with 50 pods.
func BenchmarkRead(b *testing.B) {
	n := netdevtest.New(b)
	for i := range 50 {
		pod := netdevtest.New(b)
		veth, addr := fmt.Sprintf("veth%d", i), fmt.Sprintf("10.244.1.%d/32", 2+i)
		n.Veth(veth, pod, "eth0")
		pod.Address("eth0", addr)
		n.Route(addr, "", veth)
	}
	s := n.Stack()
	b.ReportAllocs()
	for b.Loop() {
		v, err := netdev.Read(s)
		if err != nil || len(v.Peers) != 50 {
			b.Fatalf("%d pods, %v, want 50", len(v.Peers), err)
		}
	}
}
