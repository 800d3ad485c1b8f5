package nat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

const udp, tcp, sctp = packet.ProtocolUDP, packet.ProtocolTCP, packet.ProtocolSCTP

// differences are judged by what Apply makes of packets.
var ignoreDifferences = cmp.Options{cmpopts.IgnoreFields(conntrack.Rewrite{}, "L3", "L4"), cmpopts.IgnoreUnexported(conntrack.Flow{})}

func TestMake(t *testing.T) {
	const hairpin, snat = conntrack.FlagHairpin, conntrack.FlagSNAT
	for _, c := range []struct {
		because      string
		make         func() Translation
		src, dst     string // what the backend sees
		back, backTo string // what the client sees
		flags        conntrack.Flags
	}{
		{
			"a pod keeps its address",
			func() Translation { return translation(tcp, "10.244.1.2:4000", "10.96.0.1:80", "10.244.1.3:8080") },
			"10.244.1.2:4000", "10.244.1.3:8080", "10.96.0.1:80", "10.244.1.2:4000", 0,
		},
		{
			"a pod that is its own backend sees the VIP as its client",
			func() Translation { return translation(tcp, "10.244.1.2:4000", "10.96.0.1:80", "10.244.1.2:8080") },
			"10.96.0.1:4000", "10.244.1.2:8080", "10.96.0.1:80", "10.244.1.2:4000", hairpin | snat,
		},
		{
			"the same over IPv6",
			func() Translation {
				return translation(udp, "[fd00:10:244:1::2]:53", "[fd00:10:96::a]:53", "[fd00:10:244:1::2]:5353")
			},
			"[fd00:10:96::a]:53", "[fd00:10:244:1::2]:5353", "[fd00:10:96::a]:53", "[fd00:10:244:1::2]:53", hairpin | snat,
		},
		{
			"the same address in another network is another pod",
			func() Translation {
				tr := translation(tcp, "10.244.1.2:4000", "10.96.0.1:80", "10.244.1.3:8080")
				tr = To(&tr.Client, 9, tr.Client.Src, 8080)
				return tr
			},
			"10.244.1.2:4000", "10.244.1.2:8080", "10.96.0.1:80", "10.244.1.2:4000", 0,
		},
		{
			"a client outside becomes the node",
			func() Translation {
				tr := translation(tcp, "192.0.2.7:4000", "10.96.0.1:80", "10.244.2.3:8080")
				tr.Source, tr.SourcePort = endpoint("172.30.0.11:33000")
				return tr
			},
			"172.30.0.11:33000", "10.244.2.3:8080", "10.96.0.1:80", "192.0.2.7:4000", snat,
		},
		{
			"another port alone is a rewritten source",
			func() Translation {
				tr := translation(tcp, "10.244.1.2:4000", "10.96.0.1:80", "10.244.1.3:8080")
				tr.SourcePort = 33000
				return tr
			},
			"10.244.1.2:33000", "10.244.1.3:8080", "10.96.0.1:80", "10.244.1.2:4000", snat,
		},
	} {
		tr := c.make()
		fwd := conntrack.Flow{Frontend: 1, Flags: conntrack.FlagOutside | hairpin, State: conntrack.StateSeen}
		rev := conntrack.Flow{Frontend: 1, Target: 4}
		wantFwd := conntrack.Flow{Frontend: 1, Flags: conntrack.FlagOutside | c.flags, State: conntrack.StateSeen, Tuple: tr.Client}
		wantRev := conntrack.Flow{Frontend: 1, Target: 4, Flags: c.flags}
		wantFwd.Rewrite.Src, wantFwd.Rewrite.SrcPort = endpoint(c.src)
		wantFwd.Rewrite.Dst, wantFwd.Rewrite.DstPort = endpoint(c.dst)
		wantRev.Src, wantRev.SrcPort = endpoint(c.dst)
		wantRev.Dst, wantRev.DstPort = endpoint(c.src)
		wantRev.Network, wantRev.Protocol = tr.Network, tr.Client.Protocol
		wantRev.Rewrite.Src, wantRev.Rewrite.SrcPort = endpoint(c.back)
		wantRev.Rewrite.Dst, wantRev.Rewrite.DstPort = endpoint(c.backTo)
		tr.Make(&fwd, &rev)
		if diff := cmp.Diff(wantFwd, fwd, ignoreDifferences); diff != "" {
			t.Errorf("%s: forward direction differs (-want +got):\n%s", c.because, diff)
		}
		if diff := cmp.Diff(wantRev, rev, ignoreDifferences); diff != "" {
			t.Errorf("%s: reply direction differs (-want +got):\n%s", c.because, diff)
		}
	}
}
