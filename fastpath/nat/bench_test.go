package nat

import (
	"fmt"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

func BenchmarkApply(b *testing.B) {
	for familyName, fam := range families {
		for protocolName, protocol := range protocols {
			for _, size := range []int{16, 1400} {
				b.Run(fmt.Sprintf("%s/%s/%d", familyName, protocolName, size), func(b *testing.B) {
					tr := translation(protocol.number, fam.client, fam.vip, fam.backend)
					fwd, rev := tr.pair()
					back := rev.Rewrite // the way back, so that every step changes the ports
					back.Src, back.Dst, back.SrcPort, back.DstPort = back.Dst, back.Src, back.DstPort, back.SrcPort
					bytes := protocol.make(fam.client, fam.vip, strings.Repeat("x", size)).Bytes()
					var p packet.Packet
					p.Parse(bytes)
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						Apply(&p, [...]*conntrack.Rewrite{&fwd.Rewrite, &back}[i&1])
					}
				})
			}
		}
	}
}

func BenchmarkPick(b *testing.B) {
	r := seeded(1)
	ids := make([]uint32, 10)
	for b.Loop() {
		Pick(r, ids)
	}
}

// BenchmarkOpen registers a flow, source port included, and ends it.
func BenchmarkOpen(b *testing.B) {
	for name, port := range map[string]uint16{"port kept": 4000, "port from the range": 0} {
		b.Run(name, func(b *testing.B) {
			table := newTable(b, 1<<12)
			p := Ports{First: 32768, Last: 60999}
			r := seeded(1)
			var fwd, rev conntrack.Flow
			for b.Loop() {
				tr := outside(1, "10.244.1.3:5353")
				tr.SourcePort = port
				if p.Open(table, r, &tr, &fwd, &rev, 1) != conntrack.Inserted || !table.Delete(&fwd) {
					b.Fatal("flow was not opened and ended")
				}
			}
		})
	}
}
