package xdp

import (
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// BenchmarkLane measures what a packet of an installed flow costs in the program: found,
// held against its generations, rewritten and noted; without delivery. Two flows turn the
// packet into each other's, so that every run of the program hits. Subtract "nothing".
func BenchmarkLane(b *testing.B) {
	n := laneNode(b)
	empty := nothing(b)
	for name, c := range map[string]struct {
		places   places
		protocol uint8
	}{
		"tcp4": {families["IPv4"], packet.ProtocolTCP}, "udp4": {families["IPv4"], packet.ProtocolUDP},
		"tcp6": {families["IPv6"], packet.ProtocolTCP}, "udp6": {families["IPv6"], packet.ProtocolUDP},
	} {
		p := pair{client: c.places.pod, vip: c.places.vip, backend: c.places.node, clientPort: 1, vipPort: 80, backendPort: 8080, protocol: c.protocol}
		back := p
		back.vip, back.backend, back.vipPort, back.backendPort = p.backend, p.vip, p.backendPort, p.vipPort
		d := decided{p, podID, table.HostPort, ""}
		n.install(b, d)
		n.install(b, decided{back, podID, table.HostPort, ""})
		for what, program := range map[string]*ebpf.Program{"nothing": empty, "hit": n.o.bpf.FromPod} {
			b.Run(what+"/"+name, func(b *testing.B) {
				before, err := n.o.Counters()
				must(b, err)
				opts := ebpf.RunOptions{Data: d.there(ack, "lace"), Repeat: uint32(b.N), Context: skb{Ifindex: uint32(n.pod)}}
				b.ResetTimer()
				if _, err := program.Run(&opts); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				after, err := n.o.Counters()
				must(b, err)
				if hits := after.Hits().Packets - before.Hits().Packets; what == "hit" && hits != uint64(b.N) {
					b.Errorf("%d of %d packets were taken by the lane", hits, b.N)
				}
			})
		}
	}
}
