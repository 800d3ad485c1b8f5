package attach

import (
	"context"
	"net/netip"
	"testing"

	"lace-cni.io/lace/control/model"
)

func list(texts ...string) (out []netip.Addr) {
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// TestExternalAddressesAreRouted: the node itself reaches the addresses of balancers, which
// come and go; what is in a service range or the node's own needs no route. Routes that an
// earlier run made stay until the addresses are known.
func TestExternalAddressesAreRouted(t *testing.T) {
	const range4, range6 = "10.96.0.0/16 src 172.30.0.11", "fd00:10:96::/112 src fd30::11"
	w := newWorld(t)
	w.trunk(1500)
	start := func() (*Follower, *record) {
		f, r := New(Config{Node: "n1", Stack: w.Fake, Ranges: ranges}), new(record)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx, r.sink) }()
		t.Cleanup(func() { cancel(); <-done })
		return f, r
	}
	f, r := start()
	r.await(t, "the uplink is a port", port("eth0"))
	f.SetExternal(list("203.0.113.1", "10.96.7.7", "172.30.0.11", "2001:db8::1"))
	awaitRoutes(t, "set", w.Fake, range4, "203.0.113.1/32 src 172.30.0.11", "2001:db8::1/128 src fd30::11", range6)
	f.SetExternal(list("203.0.113.2"))
	awaitRoutes(t, "replaced", w.Fake, range4, "203.0.113.2/32 src 172.30.0.11", range6)

	again, r := start()
	r.await(t, "the uplink is a port", port("eth0"))
	w.routed("vethA", "10.244.1.5")
	r.await(t, "a pod is seen, so that routes were gone through", port("vethA"))
	awaitRoutes(t, "kept by the next run", w.Fake, range4, "203.0.113.2/32 src 172.30.0.11", range6)
	f.SetExternal(nil)
	again.SetExternal(nil)
	awaitRoutes(t, "none", w.Fake, range4, range6)
	r.await(t, "no route of Lace leads to a port", func(a model.Attachments, _ []model.Problem) bool {
		for _, p := range a.Routes {
			if p.Prefix.IsSingleIP() {
				return false
			}
		}
		return true
	})
}
