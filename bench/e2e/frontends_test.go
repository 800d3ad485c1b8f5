package e2e

import (
	_ "embed"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

//go:embed testdata/frontends.yaml
var frontends []byte

// exposed are the Services of testdata/frontends.yaml: the last part of their addresses, and
// who is behind them.
var exposed = map[string]struct {
	number   int
	backends []string
}{
	"anywhere": {1, []string{"web-1", "web-2", "web-3"}},
	"here":     {2, []string{"web-3"}},
	"guarded":  {3, []string{"web-1"}},
	"sticky":   {4, []string{"web-1", "web-2", "web-3"}},
	"nobody":   {5, nil},
	"rolling":  {6, []string{"web-1", "web-2"}},

	"rolling-local": {7, []string{"web-1", "web-2", "web-3"}},
}

// door is one address of a Service: a node for its node port, else a kind.
type door string

const (
	clusterIP door = "clusterIP"
	balancer  door = "balancer"
	external  door = "external"
)

// through is a request to a Service by one of its addresses.
func (c *cluster) through(w way, service string, d door) traffic.Request {
	n := exposed[service].number
	text, port := "", 80
	switch d {
	case clusterIP:
		text = map[int]string{4: fmt.Sprintf("10.96.1.%d", n), 6: fmt.Sprintf("fd00:10:96::80%d", n)}[w.family]
	case balancer:
		text = map[int]string{4: fmt.Sprintf("203.0.113.%d", n), 6: fmt.Sprintf("2001:db8:113::%d", n)}[w.family]
	case external:
		text = map[int]string{4: fmt.Sprintf("203.0.113.10%d", n), 6: fmt.Sprintf("2001:db8:113::10%d", n)}[w.family]
	default:
		text, port = c.Node(string(d)).Addr(w.family).String(), 30080+n
	}
	return traffic.Request{Network: w.network, To: netip.AddrPortFrom(netip.MustParseAddr(text), uint16(port)), Bytes: 1000, Timeout: settleTime}
}

// TestFrontends: what clients of every place get at every kind of address, with the lane and
// without it, delivered either way.
func TestFrontends(t *testing.T) {
	for _, how := range []struct{ name, lane, delivery string }{
		{"lane on, direct", "on", "direct"}, {"lane off, direct", "off", "direct"},
		{"lane on, stack", "on", "stack"}, {"lane off, stack", "off", "stack"},
	} {
		t.Run(how.name, func(t *testing.T) {
			c := newCluster(t, lab.Topology{RPFilter: 1, PodStyle: lab.PTP, Workers: 2, Lane: how.lane, Delivery: how.delivery})
			c.declare(t, "frontends", frontends)
			for name, s := range exposed {
				c.save(t, name, c.endpoints(t, manifests.Ready, s.backends...))
			}
			for name, s := range exposed {
				c.set(t, name, c.endpoints(t, manifests.Ready, s.backends...))
			}
			for _, b := range []struct {
				name string
				test func(*testing.T, *cluster)
			}{
				{"policy Cluster serves every origin at every address", policyCluster},
				{"policy Local serves clients outside at nodes with an endpoint, and clients inside everywhere but at other nodes without one", policyLocal},
				{"source ranges guard the balancer's address and no other", sourceRanges},
				{"without endpoints every address refuses every origin", everyAddressRefuses},
				{"the node's other ports are its own", otherPortsOfTheNode},
				{"an address of a balancer has no other port", otherPortsOfTheBalancer},
				{"a pod reaches itself at every address of its Service", itself},
				{"datagrams in fragments reach every address", fragmentsReach},
				{"a client keeps its endpoint at every address, also when the fast path starts again", affinityHolds},
				{"all endpoints are replaced one by one and no connection fails", rollingRestart},
				{"the endpoints of a node are replaced under policy Local, and no connection fails", rollingRestartLocal},
			} {
				t.Run(b.name, func(t *testing.T) { b.test(t, c) })
			}
		})
	}
}

// callers are one of each kind; n1 is where the outside client enters.
var callers = []string{"shopper", "visitor", "n1", "n2", lab.OutsideName}

// unrouted reports a node that calls an external address: its own packets to one do not go
// to Lace.
func unrouted(from string, d door) bool { return d == external && (from == "n1" || from == "n2") }

func policyCluster(t *testing.T, c *cluster) {
	for _, from := range callers {
		for _, d := range []door{clusterIP, balancer, external, "n1", "n2"} {
			if unrouted(from, d) {
				continue
			}
			for _, w := range ways {
				c.seenRight(t, from, d, w)
			}
		}
	}
}

// seenRight makes calls until every backend has answered, or fails. Of each the backend sees
// the client itself, but for calls that leave the node where they were resolved as they came:
// from outside of it to another node.
func (c *cluster) seenRight(t *testing.T, from string, d door, w way) {
	t.Helper()
	missing := map[string]bool{"web-1": true, "web-2": true, "web-3": true}
	r := c.through(w, "anywhere", d)
	for n := 0; len(missing) > 0 && n < attempts; n++ {
		a := c.dial(t, from, r)
		if a.Outcome != traffic.OK {
			t.Errorf("%s to %s over %s: %s", from, d, w, a)
			return
		}
		delete(missing, a.Server)
		at := c.resolvedAt(t, from, d)
		want := c.host(t, from).Addr(w.family)
		if c.host(t, from).Node != at && c.host(t, a.Server).Node != at {
			want = c.Node(at).Addr(w.family)
		}
		if a.Client.Addr() != want {
			t.Errorf("%s to %s over %s: %s sees %s, want %s", from, d, w, a.Server, a.Client.Addr(), want)
			return
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s to %s over %s: %d calls, and never answered by %v", from, d, w, attempts, missing)
	}
}

// resolvedAt is the node that chooses the backend: that of a node port, else the client's
// own, else the one where clients outside enter.
func (c *cluster) resolvedAt(t *testing.T, from string, d door) string {
	t.Helper()
	switch {
	case d == "n1" || d == "n2":
		return string(d)
	case from == lab.OutsideName:
		return "n1"
	}
	return c.host(t, from).Node
}

// expect makes one call and wants its outcome.
func (c *cluster) expect(t *testing.T, want traffic.Outcome, from, service string, d door, w way) {
	t.Helper()
	r := c.through(w, service, d)
	if want == traffic.Timeout {
		r.Timeout = 200 * time.Millisecond
	}
	if a := c.dial(t, from, r); a.Outcome != want {
		t.Errorf("%s to %s of %s over %s: %s, want %s", from, d, service, w, a, want)
	}
}

// The only endpoint of here is on n2.
func policyLocal(t *testing.T, c *cluster) {
	for _, w := range ways {
		before := c.drops(t, "n1")["no-local-endpoint"]
		for _, d := range []door{"n1", balancer, external} {
			c.expect(t, traffic.Timeout, lab.OutsideName, "here", d, w)
		}
		c.expect(t, traffic.Timeout, "visitor", "here", "n1", w)
		c.expect(t, traffic.Timeout, "n2", "here", "n1", w)
		eventually(t, "no-local-endpoint counted on n1", func() bool { return c.drops(t, "n1")["no-local-endpoint"] >= before+5 })

		r := c.through(w, "here", "n2")
		if a := c.dial(t, lab.OutsideName, r); a.Outcome != traffic.OK || a.Client.Addr() != c.host(t, lab.OutsideName).Addr(w.family) {
			t.Errorf("outside to n2 over %s: %s, seen as %s", w, a, a.Client)
		}
		for _, inside := range []struct {
			from string
			at   []door
		}{
			{"shopper", []door{"n1", "n2", balancer, external, clusterIP}}, {"visitor", []door{"n2", balancer, external, clusterIP}},
			{"n1", []door{"n1", "n2", balancer, clusterIP}}, {"n2", []door{"n2", balancer, clusterIP}},
		} {
			for _, d := range inside.at {
				c.expect(t, traffic.OK, inside.from, "here", d, w)
			}
		}
	}
}

func sourceRanges(t *testing.T, c *cluster) {
	for _, w := range ways {
		before := c.drops(t, "n1")["source-not-allowed"]
		c.expect(t, traffic.OK, lab.OutsideName, "guarded", balancer, w)
		for _, from := range []string{"shopper", "visitor", "n1", "n2"} {
			c.expect(t, traffic.Timeout, from, "guarded", balancer, w)
			c.expect(t, traffic.OK, from, "guarded", clusterIP, w)
		}
		c.expect(t, traffic.OK, "shopper", "guarded", "n1", w)
		c.expect(t, traffic.OK, "n1", "guarded", "n1", w)
		c.expect(t, traffic.OK, "shopper", "guarded", external, w)
		c.expect(t, traffic.OK, "visitor", "guarded", external, w)
		eventually(t, "source-not-allowed counted on n1", func() bool { return c.drops(t, "n1")["source-not-allowed"] >= before+2 })
	}
}

func everyAddressRefuses(t *testing.T, c *cluster) {
	for _, from := range callers {
		for _, d := range []door{clusterIP, balancer, external, "n1", "n2"} {
			if unrouted(from, d) {
				continue
			}
			for _, w := range ways {
				refused(t, c, from, c.through(w, "nobody", d))
			}
		}
	}
}

func otherPortsOfTheNode(t *testing.T, c *cluster) {
	const sshPort = 22
	n := c.Node("n1")
	c.must(t, n.Listen(t.Context(), sshPort))
	defer n.Unlisten(t.Context(), sshPort)
	for _, from := range callers {
		for _, w := range ways {
			r := c.through(w, "anywhere", "n1")
			r.To = netip.AddrPortFrom(r.To.Addr(), sshPort)
			if a := c.dial(t, from, r); a.Outcome != traffic.OK || a.Server != "n1" {
				t.Errorf("%s to port 22 of n1 over %s: %s", from, w, a)
			}
		}
	}
}

func otherPortsOfTheBalancer(t *testing.T, c *cluster) {
	for _, from := range callers {
		for _, w := range ways {
			r := c.through(w, "anywhere", balancer)
			r.To = netip.AddrPortFrom(r.To.Addr(), 22)
			refused(t, c, from, r)
		}
	}
}

// affinityHolds calls one Service by all its addresses, from clients whose calls are
// resolved on n1, before and after the fast path there is killed.
func affinityHolds(t *testing.T, c *cluster) {
	kept := map[string]string{}
	check := func(when string) {
		t.Helper()
		for _, from := range []string{"shopper", lab.OutsideName} {
			for _, w := range ways {
				for _, d := range []door{clusterIP, balancer, "n1"} {
					tally, err := c.host(t, from).Burst(t.Context(), traffic.Burst{Request: c.through(w, "sticky", d), Count: 8})
					c.must(t, err)
					if tally.Failed() > 0 || len(tally.Servers) != 1 {
						t.Errorf("%s: %s to %s over %s: %d failed (%s), answered by %v, want one", when, from, d, w, tally.Failed(), tally.First, tally.Servers)
						continue
					}
					for server := range tally.Servers {
						k := fmt.Sprint(from, w)
						if was := kept[k]; was != "" && was != server {
							t.Errorf("%s: %s to %s over %s: %s, and %s before", when, from, d, w, server, was)
						}
						kept[k] = server
					}
				}
			}
		}
	}
	check("at first")
	c.must(t, c.Node("n1").KillFastpath(t.Context()))
	c.must(t, c.Node("n1").StartFastpath(t.Context()))
	eventually(t, "the fast path serving again", func() bool {
		r := ways[0].to("web")
		r.Timeout = time.Second
		return c.dial(t, "shopper", r).Outcome == traffic.OK
	})
	check("after the fast path was killed")
}

// restarts of a pod: it drains, is gone, comes back and is ready.
var restarts = []manifests.State{manifests.Draining, manifests.Gone, manifests.NotReady, manifests.Ready}

// rollingRestart replaces the endpoints of a Service one by one, as a Deployment does, while
// clients outside and inside call some hundred times a second.
func rollingRestart(t *testing.T, c *cluster) {
	var running []*lab.Attempts
	for i, from := range []string{lab.OutsideName, "shopper"} {
		for _, d := range []door{"n1", balancer} {
			a, err := c.host(t, from).StartAttempts(t.Context(), traffic.Burst{
				Request: c.through(ways[i], "rolling", d), Every: 10 * time.Millisecond, Parallel: 32,
			})
			c.must(t, err)
			running = append(running, a)
		}
	}
	for _, pod := range exposed["rolling"].backends {
		for _, state := range restarts {
			var now []manifests.Endpoint
			for _, other := range exposed["rolling"].backends {
				s := manifests.Ready
				if other == pod {
					s = state
				}
				now = append(now, c.endpoints(t, s, other)...)
			}
			c.set(t, "rolling", now)
		}
	}
	made := 0
	for _, a := range running {
		answers, err := a.Stop(t.Context())
		c.must(t, err)
		made += len(answers)
		for _, answer := range answers {
			if answer.Outcome != traffic.OK {
				t.Errorf("a connection failed: %s", answer)
			}
		}
	}
	if made < 8*len(restarts) {
		t.Errorf("%d connections were made, too few to tell", made)
	}
}
