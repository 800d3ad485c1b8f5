package adminserver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// Drops for length say whose packets they were, beside the reason that they are counted by.
func TestDropsNameBlackHoles(t *testing.T) {
	p := newPlayed(t)
	p.totals = &counter.Totals{}
	p.totals.Reasons[reason.TooBig] = counter.Tally{Packets: 3, Bytes: 4500}
	p.totals.Reasons[reason.PacketTooBig] = counter.Tally{Packets: 9, Bytes: 9000}
	p.totals.Reasons[reason.SpoofedSource] = counter.Tally{Packets: 1, Bytes: 60}
	now := monotonic()
	p.totals.Holes = []blackhole.Hole{
		{Kind: blackhole.Untold, Tuple: conntrack.Tuple{Src: key("10.244.1.2"), Dst: key("10.96.0.10"), Protocol: 1, Network: 3}, In: 3, Out: 2, MTU: 1400, Longest: 1500, Packets: 3, Seen: now - int64(time.Second)},
		{Kind: blackhole.Unheeded, Tuple: conntrack.Tuple{Src: key("fd00::1"), Dst: key("fd00::2"), SrcPort: 4000, DstPort: 80, Protocol: 17}, In: 2, Out: 77, MTU: 1280, Longest: 9000, Packets: 1, Seen: now},
		{Kind: blackhole.Untold, Tuple: conntrack.Tuple{Src: key("10.244.1.9"), Dst: key("10.96.0.10"), Protocol: 6}, Seen: now - int64(blackhole.Lasting)},
	}
	drops, err := ask(t, p).Drops(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]api.BlackHole{}
	for _, d := range drops.Items {
		for i := range d.BlackHoles {
			if age := time.Since(d.BlackHoles[i].Seen); age < 0 || age > time.Minute {
				t.Errorf("%s: seen %s ago", d.Reason, age)
			}
			d.BlackHoles[i].Seen = time.Time{}
		}
		if d.BlackHoles != nil {
			got[d.Reason] = d.BlackHoles
		}
	}
	in := p.state.Attachments.Ports[2]
	want := map[string][]api.BlackHole{
		"too-big":        {{Protocol: "ICMP", Network: 3, Source: "10.244.1.2:0", Destination: "10.96.0.10:0", In: in.Device, Device: "eth0", MTU: 1400, Longest: 1500, Packets: 3}},
		"packet-too-big": {{Protocol: "UDP", Source: "[fd00::1]:4000", Destination: "[fd00::2]:80", In: "eth0", Device: "port 77", MTU: 1280, Longest: 9000, Packets: 1}},
	}
	if in.ID != 3 {
		t.Fatalf("the third port has id %d", in.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("black holes (-want +got):\n%s", diff)
	}
}
