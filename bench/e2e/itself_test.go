package e2e

import (
	"testing"

	"lace-cni.io/lace/bench/lab/traffic"
)

// itself lets the only endpoint of a Service call it at every address: it is answered by
// itself, and sees the address that it called in place of its own.
func itself(t *testing.T, c *cluster) {
	for _, p := range []struct {
		pod, service string
		at           []door
	}{
		{"web-1", "guarded", []door{clusterIP, external, "n1", "n2"}}, // its balancer's address is not for it
		{"web-3", "here", []door{clusterIP, balancer, external, "n2"}},
	} {
		for _, d := range p.at {
			for _, w := range ways {
				r := c.through(w, p.service, d)
				a := c.dial(t, p.pod, r)
				if a.Outcome != traffic.OK || a.Server != p.pod || a.Client.Addr() != r.To.Addr() {
					t.Errorf("%s to %s of %s over %s: %s, seen as %s, want itself, seen as %s", p.pod, d, p.service, w, a, a.Client, r.To.Addr())
				}
			}
		}
	}
}
