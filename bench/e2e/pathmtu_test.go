package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/control/model"
)

// narrowMTU is that of the narrow place on each way below; everything else takes 1,500.
const narrowMTU = 1400

// narrows are ways on which a hop takes less than the client thinks. Each has the node n2
// with the only endpoint, web-3, at its end.
var narrows = []struct {
	name    string
	clients []string
	lay     func(*testing.T, *cluster)
}{
	{"a router between the nodes", []string{"shopper", "n1"}, routerBetween},
	{"the node's own route to the other", []string{"shopper", "n1", lab.OutsideName}, ownRoute},
	{"the last hop, to the pod", []string{"shopper", "n1", lab.OutsideName}, lastHop},
}

// routerBetween lets n1 reach n2's pods by way of the outside host, which has a narrow route.
func routerBetween(t *testing.T, c *cluster) {
	t.Helper()
	router := c.host(t, lab.OutsideName)
	c.must(t, router.SetSysctls(t.Context(),
		lab.Sysctl{Name: "net.ipv4.ip_forward", Value: "1"}, lab.Sysctl{Name: "net.ipv6.conf.all.forwarding", Value: "1"},
		lab.Sysctl{Name: "net.ipv4.conf.all.send_redirects", Value: "0"}, lab.Sysctl{Name: "net.ipv4.conf.eth0.send_redirects", Value: "0"}))
	n1, n2 := c.Node("n1"), c.Node("n2")
	for _, family := range []int{4, 6} {
		reroute(t, router.PID(), podsOf2[family], n2.Addr(family), "eth0", narrowMTU)
		reroute(t, n1.PID(), podsOf2[family], router.Addr(family), "eth0", 0)
	}
}

// lastHop narrows n2's own route to the pod.
func lastHop(t *testing.T, c *cluster) {
	t.Helper()
	pod := c.Pod("web-3")
	for _, family := range []int{4, 6} {
		a := pod.Addr(family)
		reroute(t, c.Node("n2").PID(), netip.PrefixFrom(a, a.BitLen()), netip.Addr{}, "web-3", narrowMTU)
	}
}

// ownRoute narrows n1's route to n2's pods, and waits until the fast path goes by it.
func ownRoute(t *testing.T, c *cluster) {
	t.Helper()
	for _, family := range []int{4, 6} {
		reroute(t, c.Node("n1").PID(), podsOf2[family], c.Node("n2").Addr(family), "eth0", narrowMTU)
	}
	c.awaitMTU(t, "eth0")
}

var podsOf2 = map[int]netip.Prefix{4: netip.MustParsePrefix("10.244.2.0/24"), 6: netip.MustParsePrefix("fd00:10:244:2::/64")}

// reroute replaces a route of a host.
func reroute(t *testing.T, pid int, to netip.Prefix, via netip.Addr, device string, mtu int) {
	t.Helper()
	h := handle(t, pid)
	l, err := h.LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	r := &netlink.Route{
		LinkIndex: l.Attrs().Index, MTU: mtu, Scope: netlink.SCOPE_LINK,
		Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen())},
	}
	if via.IsValid() {
		r.Gw, r.Scope = via.AsSlice(), netlink.SCOPE_UNIVERSE
		r.SetFlag(netlink.FLAG_ONLINK)
	}
	if err := h.RouteReplace(r); err != nil {
		t.Fatalf("route to %s through %s: %v", to, device, err)
	}
}

// TestPathMTU: a connection through a ClusterIP over a way with a narrow place carries 10
// MB in both directions, and the client's kernel has learned, for the VIP, how narrow.
func TestPathMTU(t *testing.T) {
	for _, d := range []struct{ lane, delivery string }{{"on", "direct"}, {"off", "direct"}, {"on", "stack"}, {"off", "stack"}} {
		for _, n := range narrows {
			t.Run(fmt.Sprintf("%s, lane %s, %s", n.name, d.lane, d.delivery), func(t *testing.T) {
				c := newCluster(t, lab.Topology{RPFilter: 1, Lane: d.lane, Delivery: d.delivery})
				c.set(t, "solo", c.endpoints(t, manifests.Ready, "web-3"))
				n.lay(t, c)
				for _, client := range n.clients {
					for _, w := range ways {
						t.Run(fmt.Sprintf("%s from %s", w, client), func(t *testing.T) { c.learns(t, client, w, vip("solo", w.family)) })
					}
				}
			})
		}
	}
}

// TestPathMTUAtEveryAddress: so it is at every kind of address, also where the client is seen
// as the node.
func TestPathMTUAtEveryAddress(t *testing.T) {
	for _, how := range []lab.Topology{{Lane: "on", Delivery: "direct"}, {Lane: "off", Delivery: "direct"}, {Lane: "on", Delivery: "stack"}, {Lane: "off", Delivery: "stack"}} {
		for _, n := range narrows {
			t.Run(fmt.Sprintf("%s, lane %s, %s", n.name, how.Lane, how.Delivery), func(t *testing.T) {
				how.RPFilter = 1
				c := newCluster(t, how)
				c.declare(t, "frontends", frontends)
				c.set(t, "anywhere", c.endpoints(t, manifests.Ready, "web-3"))
				n.lay(t, c)
				for _, client := range n.clients {
					for _, d := range []door{clusterIP, balancer, external, "n1"} {
						if unrouted(client, d) {
							continue
						}
						for _, w := range ways {
							t.Run(fmt.Sprintf("%s from %s at %s", w, client, d), func(t *testing.T) {
								c.learns(t, client, w, c.through(w, "anywhere", d).To)
							})
						}
					}
				}
			})
		}
	}
}

func (c *cluster) learns(t *testing.T, client string, w way, to netip.AddrPort) {
	t.Helper()
	h := c.host(t, client)
	c.forget(t, h)
	c.forget(t, c.host(t, "web-3"))
	if w.network == "udp" {
		tooLong(t, h.PID(), to, narrowMTU)
	} else {
		r := traffic.Request{Network: w.network, To: to, Bytes: 10 << 20, Timeout: 30 * time.Second}
		if a := c.dial(t, client, r); a.Outcome != traffic.OK || a.Server != "web-3" {
			t.Errorf("10 MB: %s", a)
		}
	}
	if w.network == "tcp" && pathMTU(t, c.host(t, "web-3").PID(), c.Node("n1").Addr(w.family)) == narrowMTU {
		return // it has offered short segments: IPv6 does not forget at once what n1 said of other clients' answers
	}
	at := to.Addr()
	if at == h.Addr(w.family) { // which the node reaches by its alias
		at = model.AliasesOf([]netip.Addr{at})[at]
	}
	if got := pathMTU(t, h.PID(), at); got != narrowMTU {
		t.Errorf("the client's kernel goes by an MTU of %d for %s, want %d", got, at, narrowMTU)
	}
}

// forget empties the kernel's memory of path MTUs.
func (c *cluster) forget(t *testing.T, h *lab.Host) {
	t.Helper()
	c.must(t, h.SetSysctls(t.Context(), lab.Sysctl{Name: "net.ipv4.route.flush", Value: "1"}, lab.Sysctl{Name: "net.ipv6.route.flush", Value: "1"}))
}

// pathMTU is what `ip route get` shows; 0: nothing was learned.
func pathMTU(t *testing.T, pid int, to netip.Addr) int {
	t.Helper()
	routes, err := handle(t, pid).RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 {
		t.Fatalf("route to %s: %v", to, err)
	}
	return routes[0].MTU
}

// tooLong sends datagrams that nobody may cut and that are longer than the way takes, until
// the kernel knows that and says so; then those that fit are taken and answered.
func tooLong(t *testing.T, pid int, to netip.AddrPort, mtu int) {
	t.Helper()
	conn := dialUncut(t, pid, to)
	headers := 28
	if to.Addr().Is6() {
		headers = 48
	}
	ctx, cancel := context.WithTimeout(t.Context(), settleTime)
	defer cancel()
	write := func(n int, want error) {
		t.Helper()
		for {
			_, err := conn.Write(make([]byte, n))
			switch {
			case errors.Is(err, want):
				return
			case err != nil && !errors.Is(err, unix.EMSGSIZE), ctx.Err() != nil:
				t.Fatalf("a datagram of %d bytes over a way of %d: %v, want %v", n+headers, mtu, err, want)
			}
			// The router's word is on its way, or an earlier datagram's is yet to be told.
			time.Sleep(time.Millisecond)
		}
	}
	write(mtu-headers+1, unix.EMSGSIZE)
	write(mtu-headers, nil)
	write(mtu-headers-100, nil) // leaves room for the name that the server puts before it
	c, _ := ctx.Deadline()
	_ = conn.SetReadDeadline(c)
	if _, err := conn.Read(make([]byte, 10000)); err != nil {
		t.Errorf("datagrams that fit are not answered: %v", err)
	}
}

// dialUncut opens a UDP socket in another namespace whose datagrams nobody may cut.
func dialUncut(t *testing.T, pid int, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	return dialUDP(t, pid, to, unix.IP_PMTUDISC_DO, unix.IPV6_PMTUDISC_DO)
}

// dialUDP opens a UDP socket in another namespace with a way of path MTU discovery.
func dialUDP(t *testing.T, pid int, to netip.AddrPort, discover4, discover6 int) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ns, err := netns.GetFromPid(pid)
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if err == nil {
			conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	level, option, discover := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, discover4
	if to.Addr().Is6() {
		level, option, discover = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, discover6
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), level, option, discover) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return conn
}

// TestJumboPods: pods whose links take 9,000 bytes, between nodes whose wire takes 1,500 and
// behind a trunk that takes 3,498: every connection works, whether or not it learns less.
func TestJumboPods(t *testing.T) {
	const jumbo = 9000
	for _, lane := range lanes {
		t.Run("lane "+lane, func(t *testing.T) {
			c := newCluster(t, lab.Topology{RPFilter: 1, Lane: lane})
			for _, pod := range []string{"shopper", "web-1", "web-2"} {
				widen(t, c.Node("n1").PID(), pod, jumbo)
				widen(t, c.Pod(pod).PID(), "eth0", jumbo)
			}
			admin := c.Node("n1").Admin()
			defer admin.Close()
			eventually(t, "word that the trunk takes less", func() bool {
				problems, err := admin.Problems(t.Context())
				c.must(t, err)
				named := 0
				for _, p := range problems.Items {
					if p.Reason == "MTUExceedsTrunk" {
						named++
					}
				}
				return named == 3
			})
			for _, endpoint := range []string{"web-1", "web-3"} {
				c.set(t, "solo", c.endpoints(t, manifests.Ready, endpoint))
				for _, w := range ways {
					t.Run(fmt.Sprintf("%s to %s", w, endpoint), func(t *testing.T) {
						h, to := c.host(t, "shopper"), vip("solo", w.family)
						if w.network == "tcp" {
							r := traffic.Request{Network: "tcp", To: to, Bytes: 10 << 20, Timeout: 30 * time.Second}
							if a := c.dial(t, "shopper", r); a.Outcome != traffic.OK || a.Server != endpoint {
								t.Errorf("10 MB: %s", a)
							}
							return
						}
						c.forget(t, h)
						takes := 1500 // the wire between the nodes
						if endpoint == "web-1" {
							takes = 3498 // the trunk; nothing else on the node takes less
						}
						tooLong(t, h.PID(), to, takes)
						if got := pathMTU(t, h.PID(), to.Addr()); got != takes {
							t.Errorf("learned an MTU of %d, want %d", got, takes)
						}
					})
				}
			}
		})
	}
}

func widen(t *testing.T, pid int, device string, mtu int) {
	t.Helper()
	h := handle(t, pid)
	l, err := h.LinkByName(device)
	if err == nil {
		err = h.LinkSetMTU(l, mtu)
	}
	if err != nil {
		t.Fatalf("MTU of %s: %v", device, err)
	}
}
