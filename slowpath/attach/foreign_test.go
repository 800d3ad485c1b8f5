package attach

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// TestRoutesOfOthersStay: a route that Lace did not make keeps its prefix, whether it was
// there before ours or came later, and whatever its metric.
func TestRoutesOfOthersStay(t *testing.T) {
	for _, c := range []struct {
		name   string
		metric int
		before bool
	}{
		{"there before, and preferred", 0, true},
		{"there before, of a worse metric", 100, true},
		{"later, in our place", 0, false},
		{"later, of a worse metric", 100, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			theirs := netdev.Route{
				Destination: ranges[0], Gateway: netip.MustParseAddr("172.30.0.1"), Device: w.index("eth0"),
				Metric: c.metric, Protocol: netdev.ProtocolStatic,
			}
			if c.before {
				w.must(w.ReplaceRoute(theirs))
			}
			w.trunk(1500)
			r := run(t, w.Fake)
			if !c.before {
				awaitRoutes(t, "ours stand", w.Fake, "10.96.0.0/16 src 172.30.0.11", "fd00:10:96::/112 src fd30::11")
				w.must(w.ReplaceRoute(theirs))
			}
			awaitRoutes(t, "only the other range is ours", w.Fake, "fd00:10:96::/112 src fd30::11")
			r.await(t, "the other route is named", func(_ model.Attachments, p []model.Problem) bool {
				return slices.Equal(reasons(p), []string{"n1 RouteTaken"}) &&
					strings.Contains(p[0].Message, "10.96.0.0/16") && strings.Contains(p[0].Message, "172.30.0.1")
			})
			if err := w.DeleteRoute(theirs); err != nil {
				t.Errorf("the route of somebody else is gone: %v", err)
			}
			awaitRoutes(t, "they let go", w.Fake, "10.96.0.0/16 src 172.30.0.11", "fd00:10:96::/112 src fd30::11")
		})
	}
}

// TestARangeThatHoldsTheNodeIsNotRouted: its neighbours would be cut off.
func TestARangeThatHoldsTheNodeIsNotRouted(t *testing.T) {
	w := newWorld(t)
	w.trunk(1500)
	f, r := New(Config{Node: "n1", Stack: w.Fake, Ranges: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12"), ranges[1]}}), new(record)
	follow(t, f, r)
	awaitRoutes(t, "the other range alone", w.Fake, "fd00:10:96::/112 src fd30::11")
	r.await(t, "the range is named", func(_ model.Attachments, p []model.Problem) bool {
		return slices.Equal(reasons(p), []string{"n1 RangeOfNode"})
	})
}

func TestKernelRoutesOfOthersStay(t *testing.T) {
	n := newNode(t)
	n.trunk(t)
	n.routed(t, "vethA", "10.244.1.5", "fd00:10:244:1::5")
	s := n.Stack()
	f, r := New(Config{Node: "n1", Stack: s, Ranges: ranges}), new(record)
	follow(t, f, r)
	theirs := []string{"10.244.1.5/32", "fd00:10:244:1::5/128", "172.30.0.0/24"}
	f.SetRanges([]netip.Prefix{ranges[0], netip.MustParsePrefix(theirs[0]), netip.MustParsePrefix(theirs[1])})
	f.SetExternal(list("10.244.1.5"))
	r.await(t, "both are named", func(_ model.Attachments, p []model.Problem) bool {
		return slices.Equal(reasons(p), []string{"n1 RouteTaken", "n1 RouteTaken"})
	})
	awaitRoutes(t, "the range alone is ours", s, "10.96.0.0/16 src 172.30.0.11")
	routes, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range theirs {
		if !slices.ContainsFunc(routes, func(r netdev.Route) bool {
			return r.Destination.String() == want && r.Protocol != netdev.ProtocolLace
		}) {
			t.Errorf("the route to %s is gone: %v", want, routes)
		}
	}
}
