package compile_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
)

// TestLooping: an address of a Service at which there are endpoints is known by the Service that
// has it, with the first Service whose endpoints they are.
func TestLooping(t *testing.T) {
	name := func(s string) model.Name { return model.Name{Namespace: "demo", Name: s} }
	c := compile.New(nil)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080 10.244.1.6:8080"))
	c.SetService(service(t, "shop", "10.96.0.11", "10.244.1.5:9090 10.244.1.5:9091"))
	looping := func(what string, want map[compile.Holding]model.Name) {
		t.Helper()
		if d := cmp.Diff(want, c.Looping(), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	snapshot(t, c, 1)
	looping("addresses of pods", nil)
	c.SetService(service(t, "pods", "10.244.1.5", ""))
	snapshot(t, c, 2)
	looping("one of them is a Service's", map[compile.Holding]model.Name{
		{Service: name("pods"), Addr: netip.MustParseAddr("10.244.1.5")}: name("shop"),
	})
	c.DeleteService(name("pods"))
	snapshot(t, c, 3)
	looping("and is none any more", nil)
}
