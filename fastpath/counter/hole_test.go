package counter

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

// Black holes come out of the file as they went in, those of all workers, and beside the
// counts and the sign of life.
func TestHoles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	f, err := Create(path, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hole := func(src, dst string, seen int64) blackhole.Hole {
		return blackhole.Hole{Tuple: conntrack.Tuple{
			Src: packet.AddrFrom(netip.MustParseAddr(src)), Dst: packet.AddrFrom(netip.MustParseAddr(dst)),
			SrcPort: 4000, DstPort: 80, Network: 7, Protocol: packet.ProtocolTCP,
		}, Kind: blackhole.Unheeded, In: 4095, Out: 5, MTU: 1400, Longest: 65535, Packets: 1 << 40, Seen: seen}
	}
	var one, two [blackhole.Holes]blackhole.Hole
	one[3], two[blackhole.Holes-1] = hole("10.0.0.1", "10.0.0.2", 5), hole("fd00::1", "fd00::2", 1<<50)
	f.Worker(0).Holes(&one)
	f.Worker(1).Holes(&two)
	for i := range 2 {
		f.Worker(i).Count(reason.TooBig, 1500)
		f.Worker(i).Write(int64(100 + i))
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Totals()
	if d := cmp.Diff([]blackhole.Hole{two[blackhole.Holes-1], one[3]}, got.Holes); d != "" {
		t.Errorf("holes (-want +got):\n%s", d)
	}
	if got.Reasons[reason.TooBig].Packets != 2 || got.Beats[0] != 100 || got.Beats[1] != 101 {
		t.Errorf("too-big %d, signs of life %v", got.Reasons[reason.TooBig].Packets, got.Beats)
	}
}

// A file of a program that knew no black holes has none.
func TestHolesOfAnOlderFile(t *testing.T) {
	words := make([]uint64, newShape(1).words())
	newShape(1).write(words)
	words[wordHoles] = 0
	s, err := readShape(words)
	if err != nil {
		t.Fatal(err)
	}
	if got := (&Reader{words: words, shape: s}).Totals(); len(got.Holes) != 0 {
		t.Errorf("%+v", got.Holes)
	}
}
