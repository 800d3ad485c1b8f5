package compile_test

import (
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// aliased gives a Service a node port, and the alias of it.
func aliased(s *model.Service, own, alias string, port uint16) *model.Service {
	s = reachable(s, model.NodePort, own, port, model.PolicyLocal)
	s = reachable(s, model.NodePort, alias, port, model.PolicyLocal)
	p := &s.Ports[0]
	p.Frontends[len(p.Frontends)-1].AliasOf = netip.MustParseAddr(own)
	return s
}

// aliasOf is for which address an alias stands in a snapshot; empty: it is not published.
func aliasOf(t *testing.T, s *table.Snapshot, alias string, port uint16) string {
	t.Helper()
	a := packetAddr(alias)
	f := s.Frontend(0, &a, uint8(model.TCP), port)
	if f == nil {
		return ""
	}
	of := s.FrontendByID(f.AliasOf)
	if of == nil {
		t.Fatalf("%v stands for nothing", f)
	}
	if f.Flags&table.Narrow == 0 {
		t.Errorf("%v takes its whole address", f)
	}
	return of.Addr.String()
}

// TestAlias: an alias gives what the address gives for which it stands, and is published
// beside it alone: not for a Service that did not get the node port, and not where an API
// server listens.
func TestAlias(t *testing.T) {
	const own, alias, other = "172.30.0.11", "169.254.76.1", "172.30.0.12"
	old, young := time.Unix(1, 0), time.Unix(2, 0)
	c := compile.New(nil)
	first := aliased(service(t, "first", "10.96.0.1", "10.244.1.5:1@n1 10.244.2.5:1@n2"), own, alias, 30080)
	first.Created = young
	c.SetService(first)
	s := snapshot(t, c, 1)
	if got := aliasOf(t, s, alias, 30080); got != own {
		t.Errorf("the alias stands for %q, want %s", got, own)
	}
	if a, b := setsOf(t, s, alias, 30080), setsOf(t, s, own, 30080); a != b {
		t.Errorf("the alias gives %s, and the address %s", a, b)
	}

	// Another Service, older, takes the node port, and has no alias: the first one's is gone.
	second := reachable(service(t, "second", "10.96.0.2", "10.244.1.6:1@n1"), model.NodePort, own, 30080, model.PolicyCluster)
	second.Created = old
	c.SetService(second)
	if got := aliasOf(t, snapshot(t, c, 2), alias, 30080); got != "" {
		t.Errorf("the alias stands for %s, which is another Service's", got)
	}
	c.DeleteService(second.Name)
	if got := aliasOf(t, snapshot(t, c, 3), alias, 30080); got != own {
		t.Errorf("the alias stands for %q, want %s again", got, own)
	}
	c.SetReserved([]netip.AddrPort{netip.MustParseAddrPort(own + ":30080")})
	if got := aliasOf(t, snapshot(t, c, 4), alias, 30080); got != "" {
		t.Errorf("the alias stands for %s, where an API server listens", got)
	}
	c.SetReserved([]netip.AddrPort{netip.MustParseAddrPort(other + ":30080")})
	if got := aliasOf(t, snapshot(t, c, 5), alias, 30080); got != own {
		t.Errorf("the alias stands for %q, want %s", got, own)
	}
}

// TestAliasMakesNoProblem: a lost node port is one Problem, whatever stands for it.
func TestAliasMakesNoProblem(t *testing.T) {
	c := compile.New(nil)
	for i, name := range []string{"first", "second"} {
		s := aliased(service(t, name, []string{"10.96.0.1", "10.96.0.2"}[i], "10.244.1.5:1@n1"), "172.30.0.11", "169.254.76.1", 30080)
		s.Created = time.Unix(int64(i+1), 0)
		c.SetService(s)
	}
	snapshot(t, c, 1)
	problems := c.Problems()
	const want = "node port 30080/TCP belongs to Service demo/first, which is older; give this Service a node port of its own"
	if len(problems) != 1 || problems[0].Object != "demo/second" || problems[0].Message != want {
		t.Errorf("problems %v, want one: %s", problems, want)
	}
}
