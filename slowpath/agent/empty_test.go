package agent

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
)

// TestLostEndpoints: which Services this node tells of, ten seconds after a change.
func TestLostEndpoints(t *testing.T) {
	with := func(name string, nodes ...string) *model.Service {
		s := &model.Service{Name: model.Name{Namespace: "demo", Name: name}}
		var c model.FamilyChoice
		for _, n := range nodes {
			c.Endpoints = append(c.Endpoints, model.Endpoint{Addr: netip.MustParseAddr("10.244.1.5"), Node: n, Ready: true})
		}
		c.Internal.Any = len(nodes) > 0
		s.Ports = []model.ServicePort{{Families: map[int]model.FamilyChoice{4: c}}}
		return s
	}
	kept := with("kept", "n1")
	type world = []*model.Service
	for _, c := range []struct {
		name  string
		steps []world // a minute apart
		want  string
	}{
		{"one that loses its last endpoint, which was here", []world{{with("a", "n1")}, {with("a")}}, "demo/a"},
		{"one that has none from the beginning has lost nothing", []world{{with("a")}, {with("a")}}, ""},
		{"nor has one that is made without any", []world{{}, {with("a")}}, ""},
		{"one whose last endpoint was on another node is told of there", []world{{with("a", "n2")}, {with("a")}}, ""},
		{"of several nodes each tells", []world{{with("a", "n2", "n1")}, {with("a")}}, "demo/a"},
		{"one whose endpoints are on no node is told of by all", []world{{with("a", "")}, {with("a")}}, "demo/a"},
		{"one that has an endpoint again is not told of any more", []world{{with("a", "n1")}, {with("a")}, {with("a", "n2")}}, ""},
		{"one that is deleted is not", []world{{with("a", "n1")}, {with("a")}, {}}, ""},
		{"nor one that is deleted among others", []world{{with("a", "n1"), kept}, {with("a"), kept}, {kept}}, ""},
		{"one that was deleted and is made anew has lost nothing", []world{{with("a", "n1")}, {}, {with("a")}}, ""},
		{"one that stays empty is told of further", []world{{with("a", "n1"), kept}, {with("a"), kept}, {with("a"), kept}}, "demo/a"},
		{"others come and go beside it", []world{{with("b", "n1")}, {with("a", "n1"), with("b"), with("c")}, {with("b"), with("c", "n1")}, {with("b"), with("c")}}, "demo/b demo/c"},
	} {
		e, now := newEmptiness("n1"), time.Unix(1_700_000_000, 0)
		for _, services := range c.steps {
			now = now.Add(time.Minute)
			e.see(services, now)
		}
		var got []string
		problems, again := e.told(now.Add(emptyFor))
		for _, p := range problems {
			got = append(got, p.Object)
		}
		if strings.Join(got, " ") != c.want || !again.IsZero() {
			t.Errorf("%s: %q, again %v; want %q", c.name, got, again, c.want)
		}
	}

	e, now := newEmptiness("n1"), time.Unix(1_700_000_000, 0)
	e.see(world{with("a", "n1")}, now)
	e.see(world{with("a")}, now)
	if got, again := e.told(now.Add(emptyFor - 1)); len(got) > 0 || !again.Equal(now.Add(emptyFor)) {
		t.Errorf("before it has lasted: %v, to be asked again at %v; want nothing, and to be asked again when it has", got, again)
	}
}
