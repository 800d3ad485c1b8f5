package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// Routes of the node, whatever they go by, lead what Lace has translated, and a change of
// them does so from the next packet on.
func TestForeignRoutes(t *testing.T) {
	for _, lane := range lanes {
		t.Run("lane "+lane, func(t *testing.T) {
			c := newCluster(t, lab.Topology{RPFilter: 1, Lane: lane, Delivery: "stack"})
			c.set(t, "solo", c.endpoints(t, manifests.Ready, "web-3"))
			c.secondPath(t)
			t.Run("a table chosen by source", func(t *testing.T) { bySource(t, c) })
			t.Run("a table chosen by a firewall's mark", func(t *testing.T) { byMark(t, c) })
			t.Run("several paths, a path that goes, a neighbour that changes", func(t *testing.T) { pathsChange(t, c) })
			c.set(t, "solo", c.endpoints(t, manifests.Ready, "web-1"))
			t.Run("replies to outside clients, by a table of their own", func(t *testing.T) { repliesBySource(t, c) })
		})
	}
}

// ip runs commands of iproute2 on a host, one a line.
func ip(t *testing.T, h *lab.Host, commands string, args ...any) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(fmt.Sprintf(commands, args...)), "\n") {
		inside(t, h, "", append([]string{"ip"}, strings.Fields(line)...)...)
	}
}

// secondPath connects the nodes by another device, which no route of the main table uses.
// What comes back to n1's pods takes it wherever n2's rules say so.
func (c *cluster) secondPath(t *testing.T) {
	t.Helper()
	n1, n2 := c.Node("n1").Host, c.Node("n2").Host
	ip(t, n1, "link add path2 type veth peer name path2 netns %d", n2.PID())
	for i, h := range []*lab.Host{n1, n2} {
		ip(t, h, `addr add 172.31.0.%[1]d/24 dev path2
addr add fd31::%[1]d/64 dev path2 nodad
link set path2 up`, i+1)
	}
	// Either path is good for what comes from the other node's pods.
	for _, h := range []*lab.Host{n1, n2} {
		c.must(t, h.SetSysctls(t.Context(), lab.Sysctl{Name: "net.ipv4.conf.all.rp_filter", Value: "0"},
			lab.Sysctl{Name: "net.ipv4.conf.path2.rp_filter", Value: "2"}, lab.Sysctl{Name: "net.ipv4.conf.eth0.rp_filter", Value: "2"}))
	}
}

// crossed is how many packets have left a host by a device.
func crossed(t *testing.T, h *lab.Host, device string) uint64 {
	t.Helper()
	l, err := handle(t, h.PID()).LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	return l.Attrs().Statistics.TxPackets
}

// takes wants that shopper's calls to solo leave n1 by the second path, or by the first.
func (c *cluster) takes(t *testing.T, second bool) {
	t.Helper()
	n1, path := c.Node("n1").Host, "eth0"
	if second {
		path = "path2"
	}
	for _, w := range ways {
		before := crossed(t, n1, path)
		tally, err := c.Pod("shopper").Burst(t.Context(), traffic.Burst{Request: w.to("solo"), Count: 10})
		c.must(t, err)
		if tally.Failed() > 0 {
			t.Errorf("over %s: %d of %d failed: %s", w, tally.Failed(), tally.Attempts, tally.First)
		}
		if n := crossed(t, n1, path) - before; n < 10 {
			t.Errorf("over %s: %d packets left by %s, want all", w, n, path)
		}
	}
}

func bySource(t *testing.T, c *cluster) {
	n1 := c.Node("n1").Host
	c.takes(t, false)
	for i, from := range []netip.Addr{c.Pod("shopper").Addr4, c.Pod("shopper").Addr6} {
		to, via, family := podsOf2[4+2*i], []string{"172.31.0.2", "fd31::2"}[i], []string{"-4", "-6"}[i]
		ip(t, n1, "%s route add %s via %s dev path2 table 100\n%[1]s rule add from %[4]s lookup 100 priority 90", family, to, via, from)
		defer ip(t, n1, "%s rule del priority 90\n%[1]s route flush table 100", family)
	}
	c.takes(t, true)
}

func byMark(t *testing.T, c *cluster) {
	n1 := c.Node("n1").Host
	c.rules(t, fmt.Sprintf(`chain prerouting { type filter hook prerouting priority -150; policy accept;
 ip saddr %s ip daddr %s meta mark set 0x77
 ip6 saddr %s ip6 daddr %s meta mark set 0x77
}`, c.Pod("shopper").Addr4, podsOf2[4], c.Pod("shopper").Addr6, podsOf2[6]))
	c.takes(t, false)
	for i, via := range []string{"172.31.0.2", "fd31::2"} {
		family := []string{"-4", "-6"}[i]
		ip(t, n1, "%s route add %s via %s dev path2 table 101\n%[1]s rule add fwmark 0x77 lookup 101 priority 91", family, podsOf2[4+2*i], via)
		defer ip(t, n1, "%s rule del priority 91\n%[1]s route flush table 101", family)
	}
	c.takes(t, true)
}

// pathsChange moves the way to the other node's pods under connections.
func pathsChange(t *testing.T, c *cluster) {
	n1, n2 := c.Node("n1").Host, c.Node("n2").Host
	var streams []*lab.Stream
	for _, w := range ways {
		streams = append(streams, c.stream(t, "shopper", w, "solo", 5))
	}
	goOn(t, streams)
	each := func(commands string) {
		t.Helper()
		for i, via := range [][2]string{{n2.Addr4.String(), "172.31.0.2"}, {n2.Addr6.String(), "fd31::2"}} {
			line := strings.NewReplacer("TO", podsOf2[4+2*i].String(), "ONE", via[0], "TWO", via[1]).Replace(commands)
			ip(t, n1, "%s", []string{"-4 ", "-6 "}[i]+line)
		}
	}
	moves := func(path string) {
		t.Helper()
		before := crossed(t, n1, path)
		goOn(t, streams)
		if crossed(t, n1, path)-before < 100 {
			t.Errorf("nothing leaves by %s", path)
		}
	}
	each("route replace TO nexthop via ONE dev eth0 nexthop via TWO dev path2")
	goOn(t, streams)
	each("route replace TO via TWO dev path2")
	moves("path2")
	each("route replace TO via ONE dev eth0")
	moves("eth0")
	const mac = "02:1a:ce:00:99:99"
	ip(t, n2, "link set eth0 address %s", mac)
	for _, a := range []netip.Addr{n2.Addr4, n2.Addr6} {
		ip(t, n1, "neigh replace %s lladdr %s dev eth0 nud reachable", a, mac)
	}
	moves("eth0")
	c.finish(t, streams)
}

// repliesBySource: a client of which the main table knows nothing. Replies of pods have a
// table of their own, which looks at the pod's address, not at the VIP that Lace puts in
// its place.
func repliesBySource(t *testing.T, c *cluster) {
	n1, outside := c.Node("n1").Host, c.Outside()
	clients := []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8:7::7")}
	// n1 answers nobody's ARP request who asks as an address that it has no route to.
	c.must(t, outside.SetSysctls(t.Context(), lab.Sysctl{Name: "net.ipv4.conf.all.arp_announce", Value: "2"}))
	for i, a := range clients {
		family, pods := []string{"-4", "-6"}[i], []string{"10.244.1.0/24", "fd00:10:244:1::/64"}[i]
		via := outside.Addr(4 + 2*i)
		ip(t, outside, "addr add %s/%d dev eth0%s", a, a.BitLen(), []string{"", " nodad"}[i])
		ip(t, n1, "%s route add default via %s dev eth0 table 102\n%[1]s rule add from %[3]s lookup 102 priority 40000\n%[1]s route del default", family, via, pods)
	}
	for _, w := range ways {
		r := w.to("solo")
		r.From = netip.AddrPortFrom(clients[(w.family-4)/2], 0)
		for range 3 {
			if a := c.dial(t, lab.OutsideName, r); a.Outcome != traffic.OK || a.Server != "web-1" {
				t.Errorf("over %s: %s", w, a)
			}
		}
	}
}
