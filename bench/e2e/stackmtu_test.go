package e2e

import (
	"fmt"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
)

// TestPathMTUInStack: what the node's own stack, or a router behind it, says of a packet that
// it routed reaches the client in the client's words.
func TestPathMTUInStack(t *testing.T) {
	for _, lane := range lanes {
		for _, n := range narrows[:2] {
			t.Run(fmt.Sprintf("%s, lane %s", n.name, lane), func(t *testing.T) {
				c := newCluster(t, lab.Topology{RPFilter: 1, Lane: lane, Delivery: "stack"})
				c.set(t, "solo", c.endpoints(t, manifests.Ready, "web-3"))
				n.lay(t, c)
				for _, w := range ways {
					t.Run(w.String(), func(t *testing.T) { c.learns(t, "shopper", w, vip("solo", w.family)) })
				}
			})
		}
	}
}
