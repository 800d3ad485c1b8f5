package e2e

import (
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// A pod of the node loses its route or its device while its EndpointSlice names it: it is
// chosen as before, what is sent there is lost, and both are said, until it is mended.
func TestEndpointWithoutAPort(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Lane: "on", Delivery: "stack"})
	w := newWires(t, c)
	served(t, c)
	admin := c.Node("n1").Admin()
	to := way{"tcp", 4}.to("solo")
	backend := func() (is api.Backend) {
		list, err := admin.Backends(t.Context())
		c.must(t, err)
		for _, b := range list.Items {
			if b.Service == "solo" && b.Address == c.Pod("web-1").Addr4.String() {
				is = b
			}
		}
		return is
	}
	told := func() bool {
		problems, err := admin.Problems(t.Context())
		c.must(t, err)
		return slices.ContainsFunc(problems.Items, func(p api.Problem) bool {
			return p.Reason == "EndpointWithoutPort" && p.Object == "default/solo"
		})
	}
	said := func(from, word string) bool {
		e, err := admin.Explain(t.Context(), from, to.To.String()+"/tcp")
		c.must(t, err)
		return strings.Contains(strings.Join(e.Notes, "\n"), word)
	}
	for _, step := range []struct{ name, command string }{
		{"the route is deleted", "route del " + c.Pod("web-1").Addr4.String() + " dev web-1"},
		{"the device is down", "link set web-1 down"},
	} {
		t.Run(step.name, func(t *testing.T) {
			if b := backend(); b.NoPort || told() {
				t.Fatalf("before: %+v, told %v", b, told())
			}
			ip(t, c.Node("n1").Host, "%s", step.command)
			eventually(t, "that no port has the address is shown", func() bool { return backend().NoPort })
			if b := backend(); !b.Used {
				t.Errorf("%+v: want it chosen as ever", b)
			}
			if a := c.dial(t, "shopper", to); a.Outcome == traffic.OK {
				t.Errorf("%s: want no answer", a)
			}
			if !said("shopper", "(no-port, "+c.Pod("web-1").Addr4.String()) || !said("web-1", "this pod is on this node, and none of its ports has the address") {
				t.Error("explain does not say it")
			}
			eventually(t, "the Problem comes", told)
			w.t = t
			w.lay()
			served(t, c)
			eventually(t, "the Problem goes", func() bool { return !told() && !backend().NoPort })
		})
	}
}
