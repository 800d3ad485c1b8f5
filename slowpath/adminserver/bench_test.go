package adminserver

import (
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// BenchmarkFlowsByBackend is one walk through a table of 512 Ki slots with 100,000 flows.
func BenchmarkFlowsByBackend(b *testing.B) {
	const flows = 100_000
	t, err := conntrack.New(1 << 19)
	if err != nil {
		b.Fatal(err)
	}
	t.SetHalfOpenMax(flows)
	for i := range flows {
		client := packet.AddrFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
		fwd := conntrack.Flow{
			Tuple:   conntrack.Tuple{Src: client, SrcPort: uint16(10000 + i>>16), Dst: key("10.96.0.10"), DstPort: 80, Protocol: packet.ProtocolTCP},
			Rewrite: conntrack.Rewrite{Src: client, SrcPort: uint16(10000 + i>>16), Dst: key("10.244.1.5"), DstPort: 8080},
		}
		rev := conntrack.Flow{
			Tuple:   conntrack.Tuple{Src: fwd.Rewrite.Dst, SrcPort: 8080, Dst: client, DstPort: fwd.SrcPort, Protocol: packet.ProtocolTCP},
			Rewrite: conntrack.Rewrite{Src: fwd.Dst, SrcPort: 80, Dst: client, DstPort: fwd.SrcPort},
			Flags:   conntrack.FlagReply,
		}
		if r := t.Insert(&fwd, &rev, 1); r != conntrack.Inserted {
			b.Fatal(r)
		}
	}
	s := &Server{node: &played{flows: t}, walks: make(chan struct{}, 1)}
	b.ReportAllocs()
	for b.Loop() {
		s.load = load{}
		counted, err := s.flowsByBackend(b.Context())
		if err != nil || counted[target{0, netip.MustParseAddrPort("10.244.1.5:8080"), packet.ProtocolTCP}] != flows {
			b.Fatalf("counted %v, %v", counted, err)
		}
	}
}
