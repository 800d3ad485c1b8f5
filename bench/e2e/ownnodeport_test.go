package e2e

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/control/model"
)

// TestOwnNodePort: what a node's own processes get at addresses of the node itself.
func TestOwnNodePort(t *testing.T) {
	c := newCluster(t, lab.Topology{Lane: "on", Delivery: "direct", RPFilter: 1, PodStyle: lab.PTP, Workers: 2})
	c.declare(t, "frontends", frontends)
	for _, name := range []string{"anywhere", "guarded"} {
		c.set(t, name, c.endpoints(t, manifests.Ready, "web-3"))
	}
	for _, b := range []struct {
		name string
		test func(*testing.T, *cluster)
	}{
		{"the Service has a port on which a process listens, and no port at loopback addresses", ownListener},
		{"connections outlive the fast path, and a program that is detached comes back", ownNodePortOutlives},
		{"a balancer's address that the node holds is served, within its source ranges", heldBalancer},
		{"the way is explained", ownNodePortExplained},
		{"an endpoint on the node itself sees the alias", ownEndpoint},
		{"a Service that goes leaves the port to the node", ownNodePortGoes},
	} {
		t.Run(b.name, func(t *testing.T) { b.test(t, c) })
	}
}

func ownListener(t *testing.T, c *cluster) {
	n := c.Node("n1")
	for _, w := range ways {
		r := c.through(w, "anywhere", "n1")
		c.must(t, n.Listen(t.Context(), r.To.Port()))
		if a := c.dial(t, "n1", r); a.Outcome != traffic.OK || a.Server != "web-3" {
			t.Errorf("%s: %s, answered by %q, want web-3", w, a, a.Server)
		}
		r.To = netip.AddrPortFrom(map[int]netip.Addr{4: netip.MustParseAddr("127.0.0.1"), 6: netip.IPv6Loopback()}[w.family], r.To.Port())
		if a := c.dial(t, "n1", r); a.Outcome != traffic.Refused {
			t.Errorf("%s at loopback: %s, answered by %q, want a refusal: the process listens elsewhere", w, a, a.Server)
		}
		c.must(t, n.Unlisten(t.Context(), r.To.Port()))
	}
}

func ownNodePortOutlives(t *testing.T, c *cluster) {
	var streams []*lab.Stream
	for _, w := range ways {
		r := c.through(w, "anywhere", "n1")
		r.Timeout = silence
		s, err := c.host(t, "n1").StartStream(t.Context(), traffic.Stream{Request: r, Count: 2, Every: time.Millisecond})
		c.must(t, err)
		streams = append(streams, s)
	}
	c.must(t, c.Node("n1").KillFastpath(t.Context()))
	c.must(t, c.Node("n1").StartFastpath(t.Context()))
	c.ownNodePortServes(t, "after the fast path was killed")
	c.finish(t, streams)

	before := c.repairs(t, "n1")["program"]
	for _, pin := range []string{"own-connect4", "own-connect6", "own-sendmsg4", "own-sendmsg6"} {
		c.must(t, c.detach("n1", pin))
	}
	c.ownNodePortServes(t, "after programs were detached")
	eventually(t, "the programs counted as repaired", func() bool { return c.repairs(t, "n1")["program"] >= before+4 })
}

// ownNodePortServes waits until n1 reaches its node port every way.
func (c *cluster) ownNodePortServes(t *testing.T, when string) {
	t.Helper()
	for _, w := range ways {
		r := c.through(w, "anywhere", "n1")
		r.Timeout = time.Second
		eventually(t, when+", an answer over "+w.String(), func() bool { return c.dial(t, "n1", r).Outcome == traffic.OK })
	}
}

// heldBalancer puts balancers' addresses on n1's loopback device, as who announces them may.
func heldBalancer(t *testing.T, c *cluster) {
	h := handle(t, c.Node("n1").PID())
	lo, err := h.LinkByName("lo")
	c.must(t, err)
	for _, text := range []string{"203.0.113.1/32", "2001:db8:113::1/128", "203.0.113.3/32", "2001:db8:113::3/128"} {
		addr, err := netlink.ParseAddr(text)
		c.must(t, err)
		c.must(t, h.AddrAdd(lo, addr))
		defer func() { c.must(t, h.AddrDel(lo, addr)) }()
	}
	for _, w := range ways {
		r := c.through(w, "anywhere", balancer)
		r.Timeout = time.Second
		eventually(t, "an answer over "+w.String(), func() bool {
			a := c.dial(t, "n1", r)
			return a.Outcome == traffic.OK && a.Server == "web-3"
		})
		// Until the tables know that the node holds its address, the node itself refuses.
		guarded := c.through(w, "guarded", balancer)
		guarded.Timeout = time.Second
		eventually(t, "silence of what is guarded over "+w.String(), func() bool {
			return c.dial(t, "n1", guarded).Outcome == traffic.Timeout
		})
		before := c.drops(t, "n1")["source-not-allowed"]
		c.expect(t, traffic.Timeout, "n1", "guarded", balancer, w)
		eventually(t, "source-not-allowed counted", func() bool { return c.drops(t, "n1")["source-not-allowed"] > before })
	}
}

func ownNodePortExplained(t *testing.T, c *cluster) {
	for _, w := range ways {
		to := c.through(w, "anywhere", "n1").To.String() + "/" + w.network
		got, err := c.Node("n1").Admin().Explain(t.Context(), "host", to)
		c.must(t, err)
		if got.Verdict != "forward" || got.Service != "default/anywhere" || !strings.Contains(got.Steps[0].Text, "alias") {
			t.Errorf("%s: %s, Service %q, %+v", to, got.Verdict, got.Service, got.Steps)
		}
	}
	s, err := c.Node("n1").Admin().Status(t.Context())
	c.must(t, err)
	if s.Fastpath.Sockets != "attached" {
		t.Errorf("status says of sockets: %q", s.Fastpath.Sockets)
	}
}

func ownEndpoint(t *testing.T, c *cluster) {
	c.set(t, "anywhere", c.endpoints(t, manifests.Ready, "n1"))
	for _, w := range ways {
		a := c.dial(t, "n1", c.through(w, "anywhere", "n1"))
		if a.Outcome != traffic.OK || a.Server != "n1" || !model.IsAlias(a.Client.Addr()) {
			t.Errorf("%s: %s, answered by %q, who sees %s", w, a, a.Server, a.Client)
		}
	}
}

func ownNodePortGoes(t *testing.T, c *cluster) {
	c.retract(t, "frontends")
	for _, w := range ways {
		r := c.through(w, "anywhere", "n1")
		c.must(t, c.Node("n1").Listen(t.Context(), r.To.Port()))
		r.Timeout = time.Second
		eventually(t, "the node's own listener over "+w.String(), func() bool {
			a := c.dial(t, "n1", r)
			return a.Outcome == traffic.OK && a.Server == "n1" && a.Client.Addr() == c.Node("n1").Addr(w.family)
		})
		c.must(t, c.Node("n1").Unlisten(t.Context(), r.To.Port()))
	}
}
