package xdp

import (
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// pair is a flow by the addresses that its packets carry: client to VIP, and backend to
// client.
type pair struct {
	client, vip, backend             string
	clientPort, vipPort, backendPort uint16
	protocol                         uint8
	network                          packet.NetworkID
}

func (p pair) flows() (fwd, rev conntrack.Flow) {
	c, v, b := mapped(p.client), mapped(p.vip), mapped(p.backend)
	fwd.Tuple = conntrack.Tuple{Src: c, Dst: v, SrcPort: p.clientPort, DstPort: p.vipPort, Protocol: p.protocol, Network: p.network}
	fwd.Rewrite = conntrack.Rewrite{Src: c, Dst: b, SrcPort: p.clientPort, DstPort: p.backendPort}
	rev.Tuple = conntrack.Tuple{Src: b, Dst: c, SrcPort: p.backendPort, DstPort: p.clientPort, Protocol: p.protocol, Network: p.network}
	rev.Rewrite = conntrack.Rewrite{Src: v, Dst: c, SrcPort: p.vipPort, DstPort: p.clientPort}
	rev.Flags = conntrack.FlagReply
	return fwd, rev
}

// insert puts a flow into the table and sets the mode of both directions.
func (n *node) insert(t testing.TB, p pair, mode conntrack.Mode) {
	t.Helper()
	fwd, rev := p.flows()
	if r := n.flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted {
		t.Fatalf("inserting %+v: %v", p, r)
	}
	for _, tuple := range []conntrack.Tuple{fwd.Tuple, rev.Tuple} {
		var f conntrack.Flow
		if !n.flows.Lookup(&tuple, &f) || !n.flows.SetMode(&f, mode) {
			t.Fatalf("mode of %+v cannot be set", tuple)
		}
	}
}
