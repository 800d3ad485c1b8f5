package agent

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/xdp"
)

func TestFlowsAndCountersAreReadFromWhatTheFastPathPinned(t *testing.T) {
	bpffs := mountBPF(t)
	if c := kernelCounters(bpffs); c != nil {
		t.Errorf("counters %+v before a fast path has run", c)
	}
	o, err := xdp.Open(xdp.Config{BPFFS: bpffs, FlowSlots: 1024, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	flows, _, err := conntrack.Map(o.FlowMemory())
	if err != nil {
		t.Fatal(err)
	}
	key := func(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }
	fwd := conntrack.Flow{
		Tuple:   conntrack.Tuple{Src: key("10.244.1.8"), SrcPort: 40000, Dst: key("10.96.0.10"), DstPort: 80, Protocol: packet.ProtocolTCP},
		Rewrite: conntrack.Rewrite{Src: key("10.244.1.8"), SrcPort: 40000, Dst: key("10.244.1.5"), DstPort: 8080},
	}
	rev := conntrack.Flow{
		Tuple:   conntrack.Tuple{Src: fwd.Rewrite.Dst, SrcPort: 8080, Dst: fwd.Src, DstPort: 40000, Protocol: packet.ProtocolTCP},
		Rewrite: conntrack.Rewrite{Src: fwd.Dst, SrcPort: 80, Dst: fwd.Src, DstPort: 40000},
		Flags:   conntrack.FlagReply,
	}
	want := fwd.Tuple
	if r := flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted {
		t.Fatalf("the flow was not registered: %v", r)
	}

	seen, err := openFlows(bpffs)
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	var got []conntrack.Tuple
	seen.Range(func(f *conntrack.Flow) bool {
		got = append(got, f.Tuple)
		return true
	})
	if diff := cmp.Diff([]conntrack.Tuple{want}, got); diff != "" {
		t.Errorf("flows (-registered +seen):\n%s", diff)
	}
	if c := kernelCounters(bpffs); c == nil || c.Claimed.Packets != 0 {
		t.Errorf("counters %+v, want some that are zero", c)
	}
}
