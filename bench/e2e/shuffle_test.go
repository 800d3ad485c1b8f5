package e2e

import (
	"fmt"
	"testing"

	"lace-cni.io/lace/bench/lab/traffic"
)

// fragmentsReach sends datagrams that are longer than any MTU on the way: as the kernel cuts
// them, and in fragments that come in random order and some of them twice, question and
// answer. All are answered.
func fragmentsReach(t *testing.T, c *cluster) {
	sent := 0
	for _, from := range callers {
		for _, d := range []door{clusterIP, balancer, external, "n1", "n2"} {
			if unrouted(from, d) {
				continue
			}
			for _, family := range []int{4, 6} {
				for _, bytes := range longDatagrams {
					for _, shuffle := range []bool{false, true} {
						if shuffle && from == string(d) {
							continue // a raw socket's packets to its own node are sent nowhere else
						}
						r := c.through(way{"udp", family}, "anywhere", d)
						r.Bytes, r.Shuffle = bytes, shuffle
						what := fmt.Sprintf("%s over IPv%d, shuffled %v,", d, family, shuffle)
						sent += c.wantEchoes(t, from, r, what)
					}
				}
			}
		}
	}
	t.Logf("%d datagrams", sent)
	for _, n := range c.Nodes() {
		if k := c.drops(t, n.Name)["fragment-duplicate"]; k == 0 {
			t.Errorf("%s has met no fragment twice", n.Name)
		}
	}
}

// wantEchoes sends four datagrams one after the other and wants each to be answered. It
// returns how many were sent.
func (c *cluster) wantEchoes(t *testing.T, from string, r traffic.Request, what string) int {
	t.Helper()
	tally, err := c.host(t, from).Burst(t.Context(), traffic.Burst{Request: r, Count: 4, Parallel: 1})
	c.must(t, err)
	if tally.Failed() > 0 {
		t.Errorf("%s to %s: %d of %d datagrams of %d bytes were not echoed: %s", from, what, tally.Failed(), tally.Attempts, r.Bytes, tally.First)
	}
	return tally.Attempts
}
