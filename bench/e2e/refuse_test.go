package e2e

import (
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// refusedWithin is how soon a client must know: before it repeats its first packet (RFC
// 6298, section 2), so that the first one was answered.
const refusedWithin = time.Second

// refused makes five attempts, all of which must be refused.
func refused(t *testing.T, c *cluster, from string, r traffic.Request) {
	t.Helper()
	r.Timeout = refusedWithin
	for range 5 {
		if a := c.dial(t, from, r); a.Outcome != traffic.Refused {
			t.Errorf("%s to %s/%s: %s, want refused", from, r.To, r.Network, a)
			return
		}
	}
}

func noEndpointsRefuse(t *testing.T, c *cluster) {
	for _, from := range origins {
		for _, w := range ways {
			refused(t, c, from, w.to("empty"))
		}
	}
}

// The node listens on the port that is asked for, on all its own addresses: it must not
// be reached through a VIP.
func unknownPortIsRefused(t *testing.T, c *cluster) {
	const sshPort = 22
	for _, n := range c.Nodes() {
		c.must(t, n.Listen(t.Context(), sshPort))
		defer n.Unlisten(t.Context(), sshPort)
	}
	for _, from := range origins {
		for _, w := range ways {
			r := w.to("web")
			r.To = netip.AddrPortFrom(r.To.Addr(), sshPort)
			refused(t, c, from, r)
		}
	}
}

// dropped makes attempts that must all time out, and wants the node to count them.
func dropped(t *testing.T, c *cluster, from, node, reason string, service string) {
	t.Helper()
	for _, w := range ways {
		before := c.drops(t, node)[reason]
		r := w.to(service)
		r.Timeout = 150 * time.Millisecond
		if a := c.dial(t, from, r); a.Outcome != traffic.Timeout {
			t.Errorf("%s to %s over %s: %s, want no answer", from, service, w, a)
		}
		eventually(t, reason+" counted on "+node, func() bool { return c.drops(t, node)[reason] > before })
	}
}

func localWithoutEndpointDrops(t *testing.T, c *cluster) {
	dropped(t, c, "shopper", "n1", "no-local-endpoint", "local")
	dropped(t, c, "n1", "n1", "no-local-endpoint", "local")
	for _, w := range ways {
		if a := c.dial(t, "visitor", w.to("local")); a.Outcome != traffic.OK || a.Server != "web-3" {
			t.Errorf("on the node that has the endpoint, over %s: %s", w, a)
		}
	}
}

func unusedAddressIsDropped(t *testing.T, c *cluster) {
	dropped(t, c, "shopper", "n1", "unallocated-vip", "none")
	dropped(t, c, "n1", "n1", "unallocated-vip", "none")
	dropped(t, c, lab.OutsideName, "n1", "unallocated-vip", "none")
}

// ethernet is the length of the header that a frame has and an IP packet has not.
const ethernet = 14

// spoofedSourceIsDropped sends, from one pod, a SYN with the address of another.
func spoofedSourceIsDropped(t *testing.T, c *cluster) {
	for _, family := range []int{4, 6} {
		before := c.drops(t, "n1")["spoofed-source"]
		src := netip.AddrPortFrom(c.Pod("web-2").Addr(family), 5555)
		syn := frame.TCP(src.String(), vip("web", family).String(), packet.FlagSYN, "")
		c.must(t, c.Pod("shopper").SendIP(t.Context(), syn.Bytes()[ethernet:]))
		eventually(t, "spoofed-source", func() bool { return c.drops(t, "n1")["spoofed-source"] > before })
	}
}
