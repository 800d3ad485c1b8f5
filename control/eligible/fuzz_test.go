package eligible_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
)

// small universes, so that collisions and near misses are the rule.
var (
	fuzzNodes = []string{"", "n1", "n2", "n3"}
	fuzzZones = []string{"", "za", "zb"}
	fuzzHints = [][]string{nil, {"n1"}, {"n2"}, {"n1", "n2"}, {"za"}, {"zb"}, {"za", "zb"}, {""}}
)

// endpoint builds one from four bytes.
func endpoint(b []byte) model.Endpoint {
	return model.Endpoint{
		Addr:        netip.AddrFrom4([4]byte{10, 0, 0, b[0] % 7}),
		Port:        80 + uint16(b[0]>>7),
		Ready:       b[1]&1 != 0,
		Serving:     b[1]&2 != 0,
		Terminating: b[1]&4 != 0,
		Node:        fuzzNodes[b[1]>>3%4],
		Zone:        fuzzZones[int(b[1]>>5)%3],
		NodeHints:   fuzzHints[b[2]%8],
		ZoneHints:   fuzzHints[b[3]%8],
	}
}

// FuzzSelect compares Select with the slow model, and holds what its contract says of
// every answer.
func FuzzSelect(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{1, 1, 15, 1, 4, 2, 15, 1, 4})
	f.Add([]byte{3, 1, 15, 1, 4, 2, 14, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > 4*64 {
			return
		}
		q := query(b[0])
		var in []model.Endpoint
		for b = b[1:]; len(b) >= 4; b = b[4:] {
			in = append(in, endpoint(b))
		}
		given := slices.Clone(in)
		got := eligible.Select(in, q)
		if d := cmp.Diff(given, in, cmpAddr); d != "" {
			t.Fatalf("Select changed its argument (-before +after):\n%s", d)
		}
		want, anywhere := slowly(in, q.Policy, q.Distribution == model.PreferClosest, q.Node.Name, q.Node.Zone)
		if d := cmp.Diff(want, keys(got.Endpoints), cmpAddr); d != "" {
			t.Errorf("%+v: chosen differ from the slow model (-model +Select):\n%s\nendpoints: %+v", q, d, in)
		}
		if got.Any != anywhere {
			t.Errorf("%+v: Any = %v, the slow model says %v\nendpoints: %+v", q, got.Any, anywhere, in)
		}
		checkAnswer(t, in, got)
		shuffled := slices.Clone(in)
		rand.Shuffle(len(in), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if d := cmp.Diff(got, eligible.Select(shuffled, q), cmpAddr); d != "" {
			t.Errorf("%+v: order matters (-before +shuffled):\n%s", q, d)
		}
	})
}

func query(b byte) eligible.Query {
	return eligible.Query{
		Policy:       model.Policy(b & 1),
		Distribution: model.Distribution(b >> 1 & 1),
		Node:         model.Node{Name: fuzzNodes[b>>2&3], Zone: fuzzZones[int(b>>4)%3]},
	}
}

var cmpAddr = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }), cmpopts.EquateEmpty()}

func keys(es []model.Endpoint) map[netip.AddrPort]bool {
	out := map[netip.AddrPort]bool{}
	for _, e := range es {
		out[netip.AddrPortFrom(e.Addr, e.Port)] = true
	}
	return out
}

// checkAnswer holds the contract's promises about form.
func checkAnswer(t *testing.T, in []model.Endpoint, c model.Choice) {
	t.Helper()
	if len(c.Endpoints)+len(c.Excluded) != len(in) {
		t.Errorf("%d chosen and %d excluded of %d: each endpoint appears once", len(c.Endpoints), len(c.Excluded), len(in))
	}
	if !slices.IsSortedFunc(c.Endpoints, byAddress) {
		t.Errorf("chosen are not sorted: %v", c.Endpoints)
	}
	var out []model.Endpoint
	for _, x := range c.Excluded {
		out = append(out, x.Endpoint)
		if !known(eligible.Reasons(), x.Reason) {
			t.Errorf("reason %q is not in the list", x.Reason)
		}
	}
	if !slices.IsSortedFunc(out, byAddress) {
		t.Errorf("excluded are not sorted: %v", out)
	}
	if !known(eligible.Tiers(), c.Tier) {
		t.Errorf("tier %q is not in the list", c.Tier)
	}
	for _, n := range c.Notes {
		if !known(eligible.Notes(), n) {
			t.Errorf("note %q is not in the list", n)
		}
	}
	if (c.Tier == eligible.Nothing) != (len(c.Endpoints) == 0) {
		t.Errorf("tier %q with %d chosen", c.Tier, len(c.Endpoints))
	}
}

func byAddress(a, b model.Endpoint) int {
	return netip.AddrPortFrom(a.Addr, a.Port).Compare(netip.AddrPortFrom(b.Addr, b.Port))
}

func known(ws []eligible.Word, name string) bool {
	return slices.ContainsFunc(ws, func(w eligible.Word) bool { return w.Name == name })
}
