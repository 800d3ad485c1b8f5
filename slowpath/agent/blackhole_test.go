package agent

import (
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
)

// A port that packets do not fit is named once, with its last flow, and for a while.
func TestBlackHolesAreProblems(t *testing.T) {
	s := newScene(t)
	s.published(7)
	now := int64(time.Hour)
	hole := func(out uint16, kind blackhole.Kind, port uint16, age time.Duration) blackhole.Hole {
		return blackhole.Hole{Out: out, Kind: kind, MTU: 1400, Longest: 1500, Packets: 1, Seen: now - int64(age),
			Tuple: conntrack.Tuple{Src: packet.Addr4([4]byte{10, 0, 0, 1}), Dst: packet.Addr4([4]byte{10, 0, 0, 2}), SrcPort: port, DstPort: 80}}
	}
	totals := &counter.Totals{Holes: []blackhole.Hole{
		hole(77, blackhole.Unheeded, 4000, time.Second), hole(77, blackhole.Untold, 4001, time.Minute),
		hole(78, blackhole.Untold, 4002, time.Minute), hole(79, blackhole.Untold, 4003, blackhole.Lasting),
	}}
	got := s.blackHoles(totals, now)
	if len(got) != 2 {
		t.Fatalf("%+v, want a Problem for each of two ports", got)
	}
	for i, words := range []string{
		"packets of up to 1500 bytes from 10.0.0.1:4000 to 10.0.0.2:80 do not fit its MTU of 1400 and vanish, for their sender is told and does not listen",
		"from 10.0.0.1:4002 to 10.0.0.2:80 do not fit its MTU of 1400 and vanish, for their sender cannot be told",
	} {
		if p := got[i]; p.Kind != "Port" || p.Object != []string{"port 77", "port 78"}[i] || p.Reason != "BlackHole" || !strings.Contains(p.Message, words) {
			t.Errorf("%+v, want %q", p, words)
		}
	}
	if got := s.blackHoles(totals, now+int64(blackhole.Lasting)); len(got) != 0 {
		t.Errorf("%+v five minutes later", got)
	}
}
