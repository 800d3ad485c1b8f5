package e2e

import (
	"net/netip"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
)

// attempts of a burst: enough that each of three backends is met, but for one case in ten
// million.
const attempts = 45

func everyOriginReachesEveryBackend(t *testing.T, c *cluster) {
	for _, from := range origins {
		for _, w := range ways {
			tally, err := c.host(t, from).Burst(t.Context(), traffic.Burst{Request: w.to("web"), Count: attempts})
			c.must(t, err)
			if tally.Failed() > 0 || len(tally.Servers) != 3 {
				t.Errorf("%s to web over %s: %d of %d failed (%s), answered by %v", from, w, tally.Failed(), tally.Attempts, tally.First, tally.Servers)
			}
		}
	}
}

// A pod's backend sees the pod itself. An outside client is seen as itself by a backend on
// the node where it enters, and as that node by one on another node, whose answer would
// otherwise not come back that way.
func clientAddressIsKept(t *testing.T, c *cluster) {
	for _, from := range []string{"shopper", "visitor", lab.OutsideName} {
		for _, w := range ways {
			for range 10 {
				a := c.dial(t, from, w.to("web"))
				if a.Outcome != traffic.OK {
					t.Errorf("%s over %s: %s", from, w, a)
					break
				}
				want := c.host(t, from).Addr(w.family)
				if from == lab.OutsideName && a.Server == "web-3" {
					want = c.Node("n1").Addr(w.family)
				}
				if a.Client.Addr() != want {
					t.Errorf("%s over %s: %s sees %s, want %s", from, w, a.Server, a.Client.Addr(), want)
				}
			}
		}
	}
}

// The pod sees the VIP as its client: it would answer its own address directly.
func hairpin(t *testing.T, c *cluster) {
	for _, w := range ways {
		tally, err := c.host(t, "web-1").Burst(t.Context(), traffic.Burst{Request: w.to("solo"), Count: 50})
		c.must(t, err)
		if tally.Failed() > 0 {
			t.Errorf("over %s: %d of %d failed: %s", w, tally.Failed(), tally.Attempts, tally.First)
		}
		if a := c.dial(t, "web-1", w.to("solo")); a.Client.Addr() != vip("solo", w.family).Addr() {
			t.Errorf("over %s: seen as %s, want the VIP", w, a.Client)
		}
	}
}

// clash calls two Services with the same backend from one client port, both at once. The
// ports lie below those that the kernel gives to other connections (32768 and up).
func clash(t *testing.T, c *cluster) {
	for i, from := range []string{"shopper", "visitor", "n1", lab.OutsideName, "web-1"} {
		h := c.host(t, from)
		for k, w := range ways {
			local := netip.AddrPortFrom(netip.Addr{}, uint16(22000+10*i+k))
			var streams []*lab.Stream
			for _, service := range []string{"solo", "twin"} {
				r := w.to(service)
				r.From = local
				s, err := h.StartStream(t.Context(), traffic.Stream{Request: r})
				if err != nil {
					t.Errorf("%s over %s to %s: %v", from, w, service, err)
					continue
				}
				streams = append(streams, s)
			}
			for n, s := range streams {
				eventually(t, "20 turns", func() bool {
					p, err := s.Progress(t.Context())
					return err != nil || p.Turns >= 20 || p.Broken > 0
				})
				p, err := s.Stop(t.Context())
				c.must(t, err)
				if p.Broken > 0 || w.network == "udp" && p.Lost > 0 {
					t.Errorf("%s over %s, stream %d: broken %d, lost %d: %s", from, w, n, p.Broken, p.Lost, p.First)
				}
			}
		}
	}
}

// nodeBackends calls backends on the host network of the client's own node and of others.
func nodeBackends(t *testing.T, c *cluster) {
	for _, from := range origins {
		for service, server := range map[string]string{"node1": "n1", "node2": "n2"} {
			for _, w := range ways {
				tally, err := c.host(t, from).Burst(t.Context(), traffic.Burst{Request: w.to(service), Count: 5, Parallel: 2})
				c.must(t, err)
				if tally.Servers[server] != 5 {
					t.Errorf("%s to a backend on %s over %s: %d of 5 failed: %s", from, server, w, tally.Failed(), tally.First)
				}
			}
		}
	}
}

// directTraffic is between pods, nodes and outside, on ports that Services use as well. It
// comes from ports of its own: from one whose traffic through a Service went to the same
// endpoint, the answers would be taken for that Service's.
func directTraffic(t *testing.T, c *cluster) {
	port := uint16(20000)
	for _, from := range origins {
		for _, to := range listeners {
			for _, w := range ways {
				h := c.host(t, to)
				port++
				r := traffic.Request{Network: w.network, To: netip.AddrPortFrom(h.Addr(w.family), lab.WebTarget), Bytes: 1000,
					From: netip.AddrPortFrom(c.host(t, from).Addr(w.family), port)}
				a := c.dial(t, from, r)
				if a.Outcome != traffic.OK || a.Server != to || a.Client.Addr() != r.From.Addr() {
					t.Errorf("%s to %s over %s: %s, seen as %s", from, to, w, a, a.Client)
				}
			}
		}
	}
}
