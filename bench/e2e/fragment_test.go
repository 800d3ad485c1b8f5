package e2e

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
)

// Datagrams longer than every MTU of the lab, one of a few fragments and one near the
// longest there is.
var longDatagrams = []int{8000, 60000}

// Long datagrams are echoed whole to every origin by every kind of backend: pods on either
// node, behind the source rewrite or not, and a node's own stack.
func longDatagramsComeOver(t *testing.T, c *cluster) {
	for _, from := range origins {
		for _, service := range []string{"web", "node1", "node2"} {
			for _, family := range []int{4, 6} {
				for _, bytes := range longDatagrams {
					r := traffic.Request{Network: "udp", To: vip(service, family), Bytes: bytes, Timeout: 10 * time.Second}
					c.wantEchoes(t, from, r, fmt.Sprintf("%s over IPv%d", service, family))
				}
			}
		}
	}
}

// Fragments between a backend and somebody who does not ask by its VIP are not Lace's. The
// client ports are none that asked the VIP before: those clash, see unsupported.md.
func longDirectDatagrams(t *testing.T, c *cluster) {
	port := uint16(21000)
	for _, from := range []string{"shopper", "visitor", "n1", lab.OutsideName} {
		for _, family := range []int{4, 6} {
			for _, to := range []string{"web-1", "web-3", "n2"} {
				for range 4 {
					port++
					r := traffic.Request{Network: "udp", To: netip.AddrPortFrom(c.host(t, to).Addr(family), lab.WebTarget),
						From: netip.AddrPortFrom(c.host(t, from).Addr(family), port), Bytes: 8000, Timeout: 10 * time.Second}
					if a := c.dial(t, from, r); a.Outcome != traffic.OK {
						t.Errorf("%s to %s itself over IPv%d: a datagram of %d bytes was not echoed: %s", from, to, family, r.Bytes, a)
					}
				}
			}
		}
	}
}
