package nat

import (
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

func endpoint(s string) (packet.Addr, uint16) {
	a := netip.MustParseAddrPort(s)
	return packet.AddrFrom(a.Addr()), a.Port()
}

// translation is from client to VIP, sent on to backend with the source kept.
func translation(protocol uint8, client, vip, backend string) Translation {
	var tuple conntrack.Tuple
	tuple.Src, tuple.SrcPort = endpoint(client)
	tuple.Dst, tuple.DstPort = endpoint(vip)
	tuple.Protocol = protocol
	addr, port := endpoint(backend)
	return To(&tuple, 0, addr, port)
}

func newTable(t testing.TB, slots int) *conntrack.Table {
	t.Helper()
	table, err := conntrack.New(slots)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
