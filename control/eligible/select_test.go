package eligible_test

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
)

// ep reads "10.0.0.1 n1 za ready serving terminating nodes=n1,n2 zones=za"; the node
// and zone may be "-".
func ep(t *testing.T, s string) model.Endpoint {
	t.Helper()
	w := strings.Fields(s)
	e := model.Endpoint{Addr: netip.MustParseAddr(w[0]), Port: 80, Node: strings.Trim(w[1], "-"), Zone: strings.Trim(w[2], "-")}
	for _, word := range w[3:] {
		name, list, _ := strings.Cut(word, "=")
		switch name {
		case "ready":
			e.Ready, e.Serving = true, true
		case "serving":
			e.Serving = true
		case "terminating":
			e.Terminating = true
		case "nodes":
			e.NodeHints = strings.Split(list, ",")
		case "zones":
			e.ZoneHints = strings.Split(list, ",")
		default:
			t.Fatalf("bad endpoint %q", s)
		}
	}
	return e
}

// show writes a choice as lines: the tier with its notes, then each endpoint with + or
// the reason for its exclusion.
func show(c model.Choice) string {
	var b strings.Builder
	b.WriteString(strings.Join(append([]string{c.Tier}, c.Notes...), " "))
	if !c.Any {
		b.WriteString(" none-anywhere")
	}
	for _, e := range c.Endpoints {
		b.WriteString("\n+ " + e.Addr.String())
	}
	for _, x := range c.Excluded {
		b.WriteString("\n- " + x.Endpoint.Addr.String() + " " + x.Reason)
	}
	return b.String()
}

var here = model.Node{Name: "n1", Zone: "za"}

func TestSelect(t *testing.T) {
	cluster := eligible.Query{Node: here}
	local := eligible.Query{Node: here, Policy: model.PolicyLocal}
	closest := eligible.Query{Node: here, Distribution: model.PreferClosest}
	noZone := eligible.Query{Node: model.Node{Name: "n1"}}

	for _, tc := range []struct {
		name string
		q    eligible.Query
		in   []string
		want string
	}{
		{"no endpoint at all", cluster, nil, "nothing none-anywhere"},
		{"no endpoint at all, Local", local, nil, "nothing none-anywhere"},
		{"every ready endpoint is chosen, in order of address", cluster,
			[]string{"10.0.0.2 n2 zb ready", "10.0.0.1 n1 za ready"},
			"all\n+ 10.0.0.1\n+ 10.0.0.2"},
		{"an endpoint that is not ready and does not terminate is never chosen", cluster,
			[]string{"10.0.0.1 n1 za", "10.0.0.2 n1 za serving"},
			"nothing none-anywhere\n- 10.0.0.1 not-ready\n- 10.0.0.2 not-ready"},
		{"an endpoint that terminates and no longer serves is never chosen", cluster,
			[]string{"10.0.0.1 n1 za terminating"},
			"nothing none-anywhere\n- 10.0.0.1 not-serving"},
		{"ready is taken at its word while terminating (publishNotReadyAddresses)", cluster,
			[]string{"10.0.0.1 n1 za ready terminating"},
			"all\n+ 10.0.0.1"},
		{"ready endpoints come before terminating ones", cluster,
			[]string{"10.0.0.1 n1 za serving terminating", "10.0.0.2 n2 zb ready"},
			"all\n+ 10.0.0.2\n- 10.0.0.1 terminating-others-ready"},
		{"when none is ready, those that serve while terminating carry on", cluster,
			[]string{"10.0.0.1 n1 za serving terminating", "10.0.0.2 n2 zb serving terminating", "10.0.0.3 n2 zb terminating"},
			"terminating\n+ 10.0.0.1\n+ 10.0.0.2\n- 10.0.0.3 not-serving"},
		{"terminating ones are used whatever their hints", cluster,
			[]string{"10.0.0.1 n1 za serving terminating nodes=n1", "10.0.0.2 n2 zb serving terminating nodes=n2"},
			"terminating\n+ 10.0.0.1\n+ 10.0.0.2"},

		{"Local takes this node's ready endpoints", local,
			[]string{"10.0.0.1 n1 za ready", "10.0.0.2 n2 za ready"},
			"local\n+ 10.0.0.1\n- 10.0.0.2 not-local"},
		{"Local has none here though others exist", local,
			[]string{"10.0.0.2 n2 za ready"},
			"nothing\n- 10.0.0.2 not-local"},
		{"an endpoint without a node is never local", local,
			[]string{"10.0.0.1 - za ready"},
			"nothing\n- 10.0.0.1 node-unknown"},
		{"on a node without a name nothing is local", eligible.Query{Policy: model.PolicyLocal},
			[]string{"10.0.0.1 - za ready"},
			"nothing\n- 10.0.0.1 node-unknown"},
		{"Local falls back to its own terminating ones though ready ones are elsewhere", local,
			[]string{"10.0.0.1 n1 za serving terminating", "10.0.0.2 n2 za ready"},
			"local-terminating\n+ 10.0.0.1\n- 10.0.0.2 not-local"},
		{"Cluster does not fall back then", cluster,
			[]string{"10.0.0.1 n1 za serving terminating", "10.0.0.2 n2 za ready"},
			"all\n+ 10.0.0.2\n- 10.0.0.1 terminating-others-ready"},
		{"Local does not use terminating ones of other nodes", local,
			[]string{"10.0.0.2 n2 za serving terminating"},
			"nothing\n- 10.0.0.2 not-local"},
		{"Local prefers its ready over its terminating ones", local,
			[]string{"10.0.0.1 n1 za serving terminating", "10.0.0.2 n1 za ready"},
			"local\n+ 10.0.0.2\n- 10.0.0.1 terminating-others-ready"},
		{"Local ignores hints", local,
			[]string{"10.0.0.1 n1 za ready nodes=n2 zones=zb"},
			"local local-ignores-hints\n+ 10.0.0.1"},

		{"node hints that name this node decide", cluster,
			[]string{"10.0.0.1 n1 za ready nodes=n1 zones=za", "10.0.0.2 n2 za ready nodes=n2 zones=za"},
			"hinted-node\n+ 10.0.0.1\n- 10.0.0.2 hinted-to-other-nodes"},
		{"node hints for other nodes only: zone hints decide", cluster,
			[]string{"10.0.0.1 n2 za ready nodes=n2 zones=za", "10.0.0.2 n3 zb ready nodes=n3 zones=zb"},
			"hinted-zone node-hints-elsewhere\n+ 10.0.0.1\n- 10.0.0.2 hinted-to-other-zones"},
		{"one ready endpoint without a node hint disables node hints", cluster,
			[]string{"10.0.0.1 n1 za ready nodes=n1", "10.0.0.2 n2 za ready"},
			"all node-hints-incomplete\n+ 10.0.0.1\n+ 10.0.0.2"},
		{"one ready endpoint without a zone hint disables zone hints", cluster,
			[]string{"10.0.0.1 n1 za ready zones=za", "10.0.0.2 n2 zb ready"},
			"all zone-hints-incomplete\n+ 10.0.0.1\n+ 10.0.0.2"},
		{"an endpoint that is not ready may lack the hint", cluster,
			[]string{"10.0.0.1 n1 za ready zones=za", "10.0.0.2 n2 zb", "10.0.0.3 n2 zb serving terminating"},
			"hinted-zone\n+ 10.0.0.1\n- 10.0.0.2 not-ready\n- 10.0.0.3 terminating-others-ready"},
		{"zone hints for other zones only are ignored", cluster,
			[]string{"10.0.0.1 n1 za ready zones=zb"},
			"all zone-hints-elsewhere\n+ 10.0.0.1"},
		{"a node without a zone never uses zone hints", noZone,
			[]string{"10.0.0.1 n1 za ready zones=za", "10.0.0.2 n1 zb ready zones=zb"},
			"all node-without-zone\n+ 10.0.0.1\n+ 10.0.0.2"},
		{"a hint may name several zones", cluster,
			[]string{"10.0.0.1 n2 zb ready zones=zb,za", "10.0.0.2 n2 zb ready zones=zb"},
			"hinted-zone\n+ 10.0.0.1\n- 10.0.0.2 hinted-to-other-zones"},
		{"hints count, not where the endpoint really is", cluster,
			[]string{"10.0.0.1 n1 za ready zones=zb", "10.0.0.2 n2 zb ready zones=za"},
			"hinted-zone\n+ 10.0.0.2\n- 10.0.0.1 hinted-to-other-zones"},
		{"node and zone without hints do not matter", cluster,
			[]string{"10.0.0.1 n1 za ready", "10.0.0.2 n2 zb ready"},
			"all\n+ 10.0.0.1\n+ 10.0.0.2"},

		{"PreferClosest takes this node's first", closest,
			[]string{"10.0.0.1 n1 za ready", "10.0.0.2 n2 za ready"},
			"same-node\n+ 10.0.0.1\n- 10.0.0.2 other-node"},
		{"PreferClosest, none ready here: this zone's", closest,
			[]string{"10.0.0.1 n1 za", "10.0.0.2 n2 za ready", "10.0.0.3 n3 zb ready"},
			"same-zone\n+ 10.0.0.2\n- 10.0.0.1 not-ready\n- 10.0.0.3 other-zone"},
		{"PreferClosest, none in this zone: all", closest,
			[]string{"10.0.0.3 n3 zb ready", "10.0.0.4 - - ready"},
			"all\n+ 10.0.0.3\n+ 10.0.0.4"},
		{"PreferClosest wins over hints", closest,
			[]string{"10.0.0.1 n1 za ready nodes=n2 zones=zb", "10.0.0.2 n2 zb ready nodes=n1 zones=za"},
			"same-node hints-overridden\n+ 10.0.0.1\n- 10.0.0.2 other-node"},
		{"PreferClosest, none ready: terminating ones anywhere", closest,
			[]string{"10.0.0.1 n1 za serving terminating", "10.0.0.2 n2 zb serving terminating"},
			"terminating\n+ 10.0.0.1\n+ 10.0.0.2"},
		{"PreferClosest does not concern Local", eligible.Query{Node: here, Policy: model.PolicyLocal, Distribution: model.PreferClosest},
			[]string{"10.0.0.2 n2 za ready"},
			"nothing\n- 10.0.0.2 not-local"},

		{"of two copies the one that does not terminate counts", cluster,
			[]string{"10.0.0.1 n1 za terminating", "10.0.0.1 n2 zb ready"},
			"all\n+ 10.0.0.1\n- 10.0.0.1 duplicate"},
		{"identical copies count once", cluster,
			[]string{"10.0.0.1 n1 za ready", "10.0.0.1 n1 za ready", "10.0.0.1 n1 za ready"},
			"all\n+ 10.0.0.1\n- 10.0.0.1 duplicate\n- 10.0.0.1 duplicate"},
		{"a copy that does not count does not disable hints", cluster,
			[]string{"10.0.0.1 n1 za ready zones=za", "10.0.0.1 n1 za ready terminating"},
			"hinted-zone\n+ 10.0.0.1\n- 10.0.0.1 duplicate"},
		{"IPv6 is no different", cluster,
			[]string{"fd00::2 n1 za ready", "fd00::1 n1 za ready"},
			"all\n+ fd00::1\n+ fd00::2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var in []model.Endpoint
			for _, s := range tc.in {
				in = append(in, ep(t, s))
			}
			got := eligible.Select(in, tc.q)
			if d := cmp.Diff(tc.want, show(got)); d != "" {
				t.Errorf("choice (-want +got):\n%s", d)
			}
			checkAnswer(t, in, got)
		})
	}
}

// TestOrderDoesNotMatter: the choice is a function of the set, so that all nodes agree.
func TestOrderDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	in := make([]model.Endpoint, 100)
	for i := range in {
		in[i] = endpoint([]byte{byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())})
		if i%2 == 0 {
			in[i].Addr = netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
		}
	}
	for b := range 16 {
		q := query(byte(b))
		want := eligible.Select(in, q)
		for range 1000 / 16 {
			other := slices.Clone(in)
			rng.Shuffle(len(in), func(i, j int) { other[i], other[j] = other[j], other[i] })
			if got := eligible.Select(other, q); !reflect.DeepEqual(want, got) {
				t.Fatalf("%+v: another order, another choice (-want +got):\n%s", q, cmp.Diff(want, got, cmpAddr))
			}
		}
	}
}

func TestSortedInputIsNotCopied(t *testing.T) {
	in := []model.Endpoint{ep(t, "10.0.0.1 n1 za ready"), ep(t, "10.0.0.2 n1 za ready")}
	if n := testing.AllocsPerRun(100, func() { eligible.Select(in, eligible.Query{Node: here}) }); n != 0 {
		t.Errorf("%v allocations for endpoints in order that are all chosen, want 0", n)
	}
}

func TestUnique(t *testing.T) {
	sorted := eligible.Sort([]model.Endpoint{
		ep(t, "10.0.0.2 n1 za ready"), ep(t, "10.0.0.1 n1 za serving terminating"), ep(t, "10.0.0.1 n2 za ready"),
	})
	want := []model.Endpoint{ep(t, "10.0.0.1 n2 za ready"), ep(t, "10.0.0.2 n1 za ready")}
	if d := cmp.Diff(want, eligible.Unique(sorted), cmpAddr); d != "" {
		t.Errorf("unique (-want +got):\n%s", d)
	}
	if len(sorted) != 3 {
		t.Errorf("Unique shortened its argument to %d", len(sorted))
	}
}

func BenchmarkSelect(b *testing.B) {
	in := make([]model.Endpoint, 100)
	for i := range in {
		in[i] = model.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), Port: 80, Ready: true, Serving: true, Node: "n1", ZoneHints: []string{"za"}}
	}
	in = eligible.Sort(in)
	b.ReportAllocs()
	for b.Loop() {
		eligible.Select(in, eligible.Query{Node: here})
	}
}
