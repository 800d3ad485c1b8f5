package e2e

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
)

// TestBlackHole: a client that does not listen to ICMP and goes on sending what is too long is
// named, with the device that its packets do not fit, by drops and by a Problem.
func TestBlackHole(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1})
	c.set(t, "solo", c.endpoints(t, manifests.Ready, "web-3"))
	ownRoute(t, c)
	admin := c.Node("n1").Admin()
	defer admin.Close()
	for _, family := range []int{4, 6} {
		// The kernel takes no heed of what it learns for such a socket, and lets nobody cut.
		conn := dialUDP(t, c.host(t, "shopper").PID(), vip("solo", family), unix.IP_PMTUDISC_PROBE, unix.IPV6_PMTUDISC_PROBE)
		local := conn.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort()
		source := netip.AddrPortFrom(local.Addr().Unmap(), local.Port()).String()
		within(t, 30*time.Second, "name for the black hole", func() bool {
			_, _ = conn.Write(make([]byte, narrowMTU)) // what is refused comes back as an error
			time.Sleep(100 * time.Millisecond)         // a sender's pace: a rule about time is under test
			drops, err := admin.Drops(t.Context())
			c.must(t, err)
			for _, d := range drops.Items {
				for _, h := range d.BlackHoles {
					if d.Reason == "packet-too-big" && h.Source == source && h.Destination == vip("solo", family).String() &&
						h.In == "shopper" && h.Device == "eth0" && h.MTU == narrowMTU && h.Protocol == "UDP" {
						return true
					}
				}
			}
			return false
		})
	}
	problems, err := admin.Problems(t.Context())
	c.must(t, err)
	named := ""
	for _, p := range problems.Items {
		if p.Reason == "BlackHole" {
			named += fmt.Sprint(p.Kind, " ", p.Object, "; ")
		}
	}
	if named != "Port eth0; " {
		t.Errorf("Problems name %q, want eth0, once", named)
	}
}
