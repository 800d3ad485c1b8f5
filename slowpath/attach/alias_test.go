package attach

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

var aliasPrefixes = []netip.Prefix{model.Alias4, model.Alias6}

const alias4, alias6 = "169.254.76.0/22 src 172.30.0.11", "fd4c:6163:65:76::/64 src fd30::11"

// routing runs a follower that routes aliases.
func routing(t *testing.T, w *world) *record {
	t.Helper()
	f, r := New(Config{Node: "n1", Stack: w.Fake, Ranges: []netip.Prefix{}, Aliases: aliasPrefixes}), new(record)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx, r.sink) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// TestAliasesAreRouted: the aliases of the node's own addresses lead to the trunk, and are
// put back.
func TestAliasesAreRouted(t *testing.T) {
	w := newWorld(t)
	w.trunk(1500)
	routing(t, w)
	awaitRoutes(t, "the trunk is there", w.Fake, alias4, alias6)
	routes, err := w.Routes()
	w.must(err)
	for _, r := range routes {
		if r.Destination == model.Alias4 {
			w.must(w.DeleteRoute(r))
		}
	}
	awaitRoutes(t, "put back", w.Fake, alias4, alias6)
}

// TestAliasesThatSomebodyRoutes: a route of somebody else stays, and is told.
func TestAliasesThatSomebodyRoutes(t *testing.T) {
	w := newWorld(t)
	w.trunk(1500)
	w.must(w.AppendRoute(netdev.Route{Destination: model.Alias4, Device: w.index("eth0")}))
	r := routing(t, w)
	awaitRoutes(t, "the other family is ours", w.Fake, alias6)
	r.await(t, "a Problem", func(_ model.Attachments, problems []model.Problem) bool {
		return len(problems) == 1 && problems[0].Reason == "RouteTaken" && strings.Contains(problems[0].Message, "do not reach its own node ports")
	})
}

// TestAliasesOfOneFamily: a node without an address of a family has nothing to stand for.
func TestAliasesOfOneFamily(t *testing.T) {
	f := New(Config{Node: "n1", Aliases: aliasPrefixes})
	for _, c := range []struct {
		has  model.Attachments
		want []netip.Prefix
	}{
		{model.Attachments{}, nil},
		{model.Attachments{Node4: list("172.30.0.11")[0]}, aliasPrefixes[:1]},
		{model.Attachments{Node6: list("fd30::11")[0]}, aliasPrefixes[1:]},
	} {
		if got := f.aliases(c.has); len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%+v: %v are routed, want %v", c.has, got, c.want)
		}
	}
}
