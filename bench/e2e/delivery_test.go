package e2e

import (
	"testing"

	"lace-cni.io/lace/bench/lab"
)

// Another delivery holds for new connections; those that are there keep theirs, both ways.
func TestDeliveryChanges(t *testing.T) {
	for _, lane := range lanes {
		t.Run("lane "+lane, func(t *testing.T) {
			c := newCluster(t, lab.Topology{RPFilter: 1, Lane: lane})
			var streams []*lab.Stream
			n1 := c.Node("n1")
			for _, delivery := range []string{"direct", "stack", "direct"} {
				c.must(t, n1.StopAgent(t.Context()))
				c.must(t, n1.StartAgentWith(t.Context(), delivery))
				eventually(t, "ports of delivery "+delivery, func() bool { return c.delivers(t, delivery) })
				c.must(t, n1.AwaitReady(t.Context()))
				before := c.deliveries(t)
				for _, from := range []string{"shopper", lab.OutsideName} {
					for _, w := range ways {
						streams = append(streams, c.stream(t, from, w, "solo", 2))
					}
				}
				for client, is := range c.deliveries(t) {
					if was, there := before[client]; there && was != is {
						t.Errorf("%s went by %s and goes by %s now", client, was, is)
					} else if !there && is != delivery {
						t.Errorf("%s is new and goes by %s, want %s", client, is, delivery)
					}
				}
				goOn(t, streams)
			}
			c.finish(t, streams)
		})
	}
}

// delivers reports whether all ports of n1 have the delivery.
func (c *cluster) delivers(t *testing.T, delivery string) bool {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	ports, err := admin.Ports(t.Context())
	for _, p := range ports.Items {
		if p.Kind != "host" && p.Delivery != delivery {
			return false
		}
	}
	return err == nil && len(ports.Items) > 1
}

// deliveries of the open flows of n1.
func (c *cluster) deliveries(t *testing.T) map[string]string {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	list, err := admin.OpenFlows(t.Context(), 10_000)
	c.must(t, err)
	out := map[string]string{}
	for _, f := range list.Items {
		out[f.Protocol+" "+f.Client+" "+f.Frontend] = f.Delivery
	}
	return out
}
