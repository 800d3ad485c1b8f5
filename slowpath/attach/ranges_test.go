package attach

import (
	"context"
	"net/netip"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// TestRoutesStayUntilTheRangesAreKnown: an agent that has to ask which ranges there are
// does not take the routes away that an earlier one made, and follows the ranges when it
// knows them.
func TestRoutesStayUntilTheRangesAreKnown(t *testing.T) {
	w := newWorld(t)
	lace0 := w.trunk(1500)
	old := netdev.Route{Destination: ranges[0], Device: lace0.Index, Protocol: netdev.ProtocolLace, Source: netip.MustParseAddr("172.30.0.11")}
	w.must(w.ReplaceRoute(old))
	f := New(Config{Node: "n1", Stack: w.Fake})
	r := new(record)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx, r.sink) }()
	t.Cleanup(func() { cancel(); <-done })
	r.await(t, "the uplink is a port", port("eth0"))
	w.routed("vethA", "10.244.1.5")
	r.await(t, "a later pass", port("vethA"))
	awaitRoutes(t, "the ranges are not known", w.Fake, "10.96.0.0/16 src 172.30.0.11")
	r.await(t, "the range is no route of an uplink", func(a model.Attachments, _ []model.Problem) bool {
		for _, route := range a.Routes {
			if route.Prefix == ranges[0] {
				return false
			}
		}
		return true
	})
	f.SetRanges([]netip.Prefix{netip.MustParsePrefix("10.97.0.0/16")})
	awaitRoutes(t, "the ranges are known", w.Fake, "10.97.0.0/16 src 172.30.0.11")
	f.SetRanges(nil)
	awaitRoutes(t, "there are no ranges", w.Fake)
}
