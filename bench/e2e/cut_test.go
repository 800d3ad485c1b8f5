package e2e

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
)

// cutting are ways with a narrow place behind the first node, and who is at their ends.
var cutting = []struct {
	name    string
	server  string
	clients []string
	lay     func(*testing.T, *cluster)
}{
	{"to the other node", "web-3", []string{"shopper", "n1", lab.OutsideName}, ownRoute},
	{"to a pod of the node", "web-1", []string{"shopper", "n1", lab.OutsideName}, narrowPod},
}

// narrowPod narrows n1's route to a pod of its own, and waits until the fast path goes by it.
func narrowPod(t *testing.T, c *cluster) {
	t.Helper()
	for _, family := range []int{4, 6} {
		a := c.Pod("web-1").Addr(family)
		reroute(t, c.Node("n1").PID(), netip.PrefixFrom(a, a.BitLen()), netip.Addr{}, "web-1", narrowMTU)
	}
	c.awaitMTU(t, "web-1")
}

// awaitMTU waits until a port of n1 is narrow.
func (c *cluster) awaitMTU(t *testing.T, device string) {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	eventually(t, "narrow "+device, func() bool {
		ports, err := admin.Ports(t.Context())
		c.must(t, err)
		for _, p := range ports.Items {
			if p.Device == device {
				return p.MTU == narrowMTU
			}
		}
		return false
	})
}

// TestCutting: datagrams that routers may cut cross a way with a narrow place, at the first
// attempt and in both directions: whole ones that are a little too long, and fragments.
func TestCutting(t *testing.T) {
	for _, lane := range lanes {
		for _, n := range cutting {
			t.Run(fmt.Sprintf("%s, lane %s", n.name, lane), func(t *testing.T) {
				c := newCluster(t, lab.Topology{RPFilter: 1, Lane: lane})
				c.set(t, "solo", c.endpoints(t, manifests.Ready, n.server))
				n.lay(t, c)
				for _, name := range append([]string{n.server}, n.clients...) {
					// Sockets made from now on let routers cut what they send.
					c.must(t, c.host(t, name).SetSysctls(t.Context(), lab.Sysctl{Name: "net.ipv4.ip_no_pmtu_disc", Value: "1"}))
				}
				server := c.host(t, n.server)
				c.must(t, server.Unlisten(t.Context(), lab.WebTarget))
				c.must(t, server.Listen(t.Context(), lab.WebTarget))
				for _, client := range n.clients {
					for _, bytes := range []int{1390, 8000} {
						before := c.cuts(t)
						r := traffic.Request{Network: "udp", To: vip("solo", 4), Bytes: bytes, Timeout: 10 * time.Second}
						c.wantEchoes(t, client, r, "solo")
						if client == "n1" {
							continue // its own kernel knows what every port takes
						}
						eventually(t, "pieces counted", func() bool { return c.cuts(t) >= before+4 })
					}
				}
			})
		}
	}
}

// cuts is how many packets both nodes' fast paths have cut.
func (c *cluster) cuts(t *testing.T) (n uint64) {
	t.Helper()
	for _, node := range c.Nodes() {
		r, err := counter.Open(c.stateFile(node.Name, "counters"))
		c.must(t, err)
		n += r.Totals().Reasons[reason.Cut].Packets
		c.must(t, r.Close())
	}
	return n
}
