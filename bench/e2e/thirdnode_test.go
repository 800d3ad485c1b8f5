package e2e

import (
	_ "embed"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

//go:embed testdata/thirdnode.yaml
var thirdNode []byte

// TestThirdNode: under policy Local the node that is dialled decides, also when neither it nor
// the client's node has an endpoint: n3 drops whoever comes from elsewhere, and serves itself
// from n2, where the only endpoint is; it reaches everybody else as any client does.
func TestThirdNode(t *testing.T) {
	for _, how := range []lab.Topology{{Lane: "on", Delivery: "stack"}, {Lane: "off", Delivery: "direct"}} {
		t.Run("lane "+how.Lane+", "+how.Delivery, func(t *testing.T) {
			how.RPFilter, how.Third = 1, true
			c := newCluster(t, how)
			c.declare(t, "thirdnode", thirdNode)
			c.declare(t, "frontends", frontends)
			c.save(t, "here", c.endpoints(t, manifests.Ready, "web-3"))
			c.set(t, "here", c.endpoints(t, manifests.Ready, "web-3"))
			for _, w := range ways {
				before := c.drops(t, "n3")["no-local-endpoint"]
				for _, from := range []string{"shopper", "visitor", "n1", "n2", lab.OutsideName} {
					c.expect(t, traffic.Timeout, from, "here", "n3", w)
				}
				eventually(t, "no-local-endpoint counted on n3", func() bool { return c.drops(t, "n3")["no-local-endpoint"] >= before+5 })
				for _, d := range []door{"n3", "n2", balancer, clusterIP} {
					c.expect(t, traffic.OK, "n3", "here", d, w)
				}
				c.expect(t, traffic.Timeout, "n3", "here", "n1", w)
			}
		})
	}
}
