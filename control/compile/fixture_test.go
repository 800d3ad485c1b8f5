package compile_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

var here = model.Node{Name: "n1", Zone: "za"}

// created is the time of every snapshot here: it plays no part in anything.
var created = time.Unix(1_700_000_000, 0)

// endpoints reads "10.244.1.5:8080 10.244.2.5:8080@n2,ready": address, port, node and
// one of ready (the default), down, draining, dying.
func endpoints(t testing.TB, text string) (out []model.Endpoint) {
	t.Helper()
	for _, w := range strings.Fields(text) {
		where, state, _ := strings.Cut(w, ",")
		addr, node, _ := strings.Cut(where, "@")
		ap := netip.MustParseAddrPort(addr)
		e := model.Endpoint{Addr: ap.Addr(), Port: ap.Port(), Node: node}
		switch state {
		case "", "ready":
			e.Ready, e.Serving = true, true
		case "draining":
			e.Serving, e.Terminating = true, true
		case "dying":
			e.Terminating = true
		case "down":
		default:
			t.Fatalf("bad endpoint %q", w)
		}
		out = append(out, e)
	}
	return eligible.Unique(eligible.Sort(out))
}

// service has one TCP port 80 on every address, and the endpoints of the family of each.
func service(t testing.TB, name, addrs, eps string, policy ...model.Policy) *model.Service {
	t.Helper()
	s := &model.Service{Name: model.Name{Namespace: "demo", Name: name}, Type: "ClusterIP"}
	if len(policy) > 0 {
		s.InternalPolicy = policy[0]
	}
	p := model.ServicePort{Protocol: model.TCP, Port: 80, Families: map[int]model.FamilyChoice{}}
	for _, a := range strings.Fields(addrs) {
		addr := netip.MustParseAddr(a)
		p.Frontends = append(p.Frontends, model.Frontend{Kind: model.ClusterIP, Addr: addr, Port: 80, Protocol: model.TCP})
		fam := 6
		if addr.Is4() {
			fam = 4
		}
		var mine []model.Endpoint
		for _, e := range endpoints(t, eps) {
			if e.Addr.Is4() == addr.Is4() {
				mine = append(mine, e)
			}
		}
		p.Families[fam] = model.FamilyChoice{
			Endpoints: mine,
			Internal:  eligible.Select(mine, eligible.Query{Policy: s.InternalPolicy, Node: here}),
		}
	}
	s.Ports = []model.ServicePort{p}
	return s
}

// snapshot publishes and reads back.
func snapshot(t testing.TB, c *compile.Compiler, generation uint64) *table.Snapshot {
	t.Helper()
	s, _ := snapshotProblems(t, c, generation)
	return s
}

func snapshotProblems(t testing.TB, c *compile.Compiler, generation uint64) (*table.Snapshot, []model.Problem) {
	t.Helper()
	b, problems, err := c.Snapshot(generation, created)
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Load(append([]byte(nil), b...))
	if err != nil {
		t.Fatalf("the snapshot cannot be read: %v", err)
	}
	return s, problems
}

// frontendsOf writes every frontend and its backends, by address.
func frontendsOf(s *table.Snapshot) map[string]string {
	out := map[string]string{}
	for _, f := range s.Frontends() {
		var words []string
		for _, id := range s.Set(f.Inside) {
			b := s.Backend(id)
			words = append(words, netip.AddrPortFrom(b.Addr.Netip(), b.Port).String())
		}
		if len(words) == 0 {
			words = []string{[]string{"refuse", "drop"}[f.Inside.Empty]}
		}
		out[fmt.Sprintf("%s:%d", f.Addr, f.Port)] = strings.Join(words, " ")
	}
	return out
}

// backendsOf writes every backend, with "-" when it does not serve.
func backendsOf(s *table.Snapshot) map[string]string {
	out := map[string]string{}
	for _, b := range s.Backends() {
		out[netip.AddrPortFrom(b.Addr.Netip(), b.Port).String()] = []string{"-", "serving"}[b.Serving]
	}
	return out
}

func problemsOf(ps []model.Problem) (out []string) {
	for _, p := range ps {
		out = append(out, strings.TrimSpace(p.Kind+" "+p.Object+" "+p.Reason))
	}
	return out
}

func diff(t testing.TB, what string, want, got any) {
	t.Helper()
	if reflect.DeepEqual(want, got) { // cmp is slow
		return
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
