package e2e

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
)

// recovery bounds how long Services may be away after something was done to a device.
const recovery = 5 * time.Second

// wires speaks netlink inside n1 and inside the pod behind the Service solo, and plays the
// network plugin that made the pod's link.
type wires struct {
	t         *testing.T
	node, pod *netlink.Handle
	wire      *netlink.Handle // the other ends of all uplinks
	podPID    int
	device    string // n1's end of the pod's link
	addrs     []netip.Addr
	gateways  []netip.Addr
}

func newWires(t *testing.T, c *cluster) *wires {
	pod := c.Pod("web-1")
	w := &wires{
		t: t, node: handle(t, c.Node("n1").PID()), pod: handle(t, pod.PID()), podPID: pod.PID(), device: "web-1",
		wire:     handle(t, c.Wire().PID()),
		addrs:    []netip.Addr{pod.Addr4, pod.Addr6},
		gateways: []netip.Addr{netip.MustParseAddr("10.244.1.1"), netip.MustParseAddr("fd00:10:244:1::1")},
	}
	return w
}

func handle(t *testing.T, pid int) *netlink.Handle {
	t.Helper()
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func (w *wires) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wires) link(h *netlink.Handle, name string) netlink.Link {
	w.t.Helper()
	l, err := h.LinkByName(name)
	w.must(err)
	return l
}

// alone is the prefix of one address.
func alone(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

// lay puts back on both ends of the pod's link what the kernel takes away when one goes down.
func (w *wires) lay() {
	w.t.Helper()
	outer, inner := w.link(w.node, w.device), w.link(w.pod, "eth0")
	w.must(w.pod.LinkSetUp(inner))
	w.must(w.node.LinkSetUp(outer))
	for i, a := range w.addrs {
		gateway := w.gateways[i]
		w.must(w.node.AddrReplace(outer, &netlink.Addr{IPNet: alone(gateway), Flags: unix.IFA_F_NODAD}))
		w.must(w.pod.AddrReplace(inner, &netlink.Addr{IPNet: alone(a), Flags: unix.IFA_F_NODAD}))
		w.must(w.node.RouteReplace(&netlink.Route{LinkIndex: outer.Attrs().Index, Dst: alone(a), Scope: netlink.SCOPE_LINK}))
		w.must(w.pod.RouteReplace(&netlink.Route{LinkIndex: inner.Attrs().Index, Dst: alone(gateway), Scope: netlink.SCOPE_LINK}))
		all := &net.IPNet{IP: make(net.IP, a.BitLen()/8), Mask: net.CIDRMask(0, a.BitLen())}
		w.must(w.pod.RouteReplace(&netlink.Route{LinkIndex: inner.Attrs().Index, Dst: all, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}))
	}
}

func (w *wires) deleteTrunk() { w.must(w.node.LinkDel(w.link(w.node, "lace0"))) }

func (w *wires) bounceTrunk() {
	lace0 := w.link(w.node, "lace0")
	w.must(w.node.LinkSetDown(lace0))
	w.must(w.node.LinkSetUp(lace0))
}

func (w *wires) bouncePod() {
	w.must(w.node.LinkSetDown(w.link(w.node, w.device)))
	w.lay()
}

// pullCable takes the carrier from n1's uplink, and gives it back.
func (w *wires) pullCable() {
	port := w.link(w.wire, "n1")
	w.must(w.wire.LinkSetDown(port))
	w.must(w.wire.LinkSetUp(port))
}

func (w *wires) rename() {
	const name = "renamed"
	w.must(w.node.LinkSetName(w.link(w.node, w.device), name))
	w.device = name
}

func (w *wires) shrink() {
	w.must(w.node.LinkSetMTU(w.link(w.node, w.device), 1400))
	w.must(w.pod.LinkSetMTU(w.link(w.pod, "eth0"), 1400))
}

func (w *wires) replace() {
	w.must(w.node.LinkDel(w.link(w.node, w.device)))
	w.device = "web-1"
	attrs := netlink.NewLinkAttrs()
	attrs.Name = w.device
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerNamespace = "eth0", netlink.NsPid(w.podPID)
	w.must(w.node.LinkAdd(v))
	w.lay()
}

// Whatever is done to a device, Services are back soon, and both processes live.
func TestDevicesChangeUnderTheFastPath(t *testing.T) {
	for _, lane := range lanes {
		t.Run("lane "+lane, func(t *testing.T) {
			c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: lane})
			w := newWires(t, c)
			served(t, c)
			for _, step := range []struct {
				name string
				do   func()
			}{
				{"the trunk is deleted", w.deleteTrunk},
				{"the trunk goes down and up", w.bounceTrunk},
				{"a pod's link goes down and up", w.bouncePod},
				{"the uplink's cable is pulled and put back", w.pullCable},
				{"a pod's device gets another name", w.rename},
				{"a pod's link gets a smaller MTU", w.shrink},
				{"a pod's link is made anew", w.replace},
			} {
				t.Run(step.name, func(t *testing.T) {
					w.t = t
					step.do()
					served(t, c)
				})
			}
			w.t = t
			alive(t, c)
		})
	}
}

// served waits until clients of every kind are answered, over every protocol and family,
// many times in a row.
func served(t *testing.T, c *cluster) {
	t.Helper()
	for _, from := range []string{"shopper", "visitor", "n1", lab.OutsideName} {
		for _, way := range ways {
			r := way.to("solo")
			r.Timeout = 200 * time.Millisecond
			var last traffic.Answer
			row := 0
			for deadline := time.Now().Add(recovery); row < 5; {
				if last = c.dial(t, from, r); last.Outcome == traffic.OK {
					row++
					continue
				}
				row = 0
				if time.Now().After(deadline) {
					t.Errorf("from %s over %s: not served again within %v: %s", from, way, recovery, last)
					break
				}
			}
		}
	}
}

// alive wants both processes of n1 to serve still, and never to have panicked.
func alive(t *testing.T, c *cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleTime)
	defer cancel()
	c.must(t, c.Node("n1").AwaitReady(ctx))
	for _, role := range []string{"fastpath", "agent"} {
		b, err := os.ReadFile(c.Node("n1").Log(role))
		c.must(t, err)
		for _, word := range []string{"panic:", "fatal error:", "SIGBUS"} {
			if strings.Contains(string(b), word) {
				t.Errorf("the %s says %q", role, word)
			}
		}
	}
}
