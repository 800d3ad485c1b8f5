package e2e

import (
	"slices"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// Forwarding that is switched off under a running Lace stops what the node's stack delivers.
// That is told as long as it is so, and connections work again as soon as it is on.
func TestForwardingSwitchedOff(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Lane: "on", Delivery: "stack"})
	c.set(t, "solo", c.endpoints(t, manifests.Ready, "web-3"))
	for _, w := range ways[:2] {
		t.Run(w.String(), func(t *testing.T) {
			n1 := c.Node("n1")
			sysctl := map[int]string{4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}[w.family]
			told := func() bool {
				problems, err := n1.Admin().Problems(t.Context())
				c.must(t, err)
				return slices.ContainsFunc(problems.Items, func(p api.Problem) bool { return p.Reason == "ForwardingOff" })
			}
			if a := c.dial(t, "shopper", w.to("solo")); a.Outcome != traffic.OK || told() {
				t.Fatalf("before: %s, told %v", a, told())
			}
			c.must(t, n1.Host.SetSysctls(t.Context(), lab.Sysctl{Name: sysctl, Value: "0"}))
			if a := c.dial(t, "shopper", w.to("solo")); a.Outcome == traffic.OK {
				t.Errorf("with %s = 0: %s, want no answer", sysctl, a)
			}
			eventually(t, "that nothing is forwarded is told", told)
			c.must(t, n1.Host.SetSysctls(t.Context(), lab.Sysctl{Name: sysctl, Value: "1"}))
			eventually(t, "that all is well is seen", func() bool { return !told() })
			if a := c.dial(t, "shopper", w.to("solo")); a.Outcome != traffic.OK {
				t.Errorf("with %s = 1 again: %s", sysctl, a)
			}
		})
	}
}
