package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
)

// Somebody takes things away from a node under load, one after the other. Each is noticed
// and put right, which is counted, and Services work for everybody as before; what was
// established goes on, and what is not for a Service loses nothing.
func TestFaultsUnderLoad(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: "on"})
	w := newWires(t, c)
	l := startLoad(t, c)
	for _, f := range []struct {
		name, what string
		do         func() error
	}{
		{"the trunk is deleted", "trunk", func() error { return w.node.LinkDel(w.link(w.node, "lace0")) }},
		{"lace0 is set down", "trunk", func() error { return w.node.LinkSetDown(w.link(w.node, "lace0")) }},
		{"lace1 is set down", "trunk", func() error { return c.setDownLace1("n1") }},
		{"a client pod's program is detached", "program", func() error { return c.detach("n1", w.pin("shopper", "in")) }},
		{"the inject program is detached", "program", func() error { return c.detach("n1", "lace0-in") }},
		{"XDP is detached from the trunk", "program", func() error { return c.detach("n1", "lace1-xdp") }},
		{"the flow table is unpinned", "map-pin", func() error { return os.Remove(c.stateFile("n1", "bpf/lace/maps/flows")) }},
		{"an attachment is unpinned", "link-pin", func() error { return os.Remove(c.stateFile("n1", "bpf/lace/links/lace0-in")) }},
		{"the routes to lace0 are deleted", "route", func() error { return w.deleteRoutes() }},
		{"the snapshot is removed", "snapshot", func() error { return os.Remove(c.stateFile("n1", "snapshot")) }},
		{"the snapshot is damaged", "snapshot", func() error { return scribble(c.stateFile("n1", "snapshot")) }},
		{"the counter file is removed", "counters", func() error { return os.Remove(c.stateFile("n1", "counters")) }},
	} {
		t.Run(f.name, func(t *testing.T) {
			w.t = t
			before := c.repairs(t, "n1")[f.what]
			began := time.Now()
			c.must(t, f.do())
			eventually(t, "repair of "+f.what, func() bool { return c.repairs(t, "n1")[f.what] > before })
			repaired := time.Since(began)
			everybodyIsServed(t, c)
			t.Logf("repaired after %s, everybody is served after %s", repaired.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
			goOn(t, l.service)
		})
	}
	w.t = t
	l.stop(t)
	alive(t, c)
	eventually(t, "end of all Problems", func() bool { return c.problems(t) == 0 })
}

// A program that is detached where answers come in lets them pass untranslated, and their
// clients refuse them: connections may break. New ones work as soon as it is attached
// again.
func TestProgramForAnswersDetached(t *testing.T) {
	c := newCluster(t, lab.Topology{Lane: "on"})
	w := newWires(t, c)
	for _, pin := range []string{w.pin("web-1", "in"), w.pin("web-1", "out"), w.pin("eth0", "in"), w.pin("eth0", "out")} {
		before := c.repairs(t, "n1")["program"]
		c.must(t, c.detach("n1", pin))
		eventually(t, "repair of a program", func() bool { return c.repairs(t, "n1")["program"] > before })
		served(t, c)
	}
}

// repairs of a node, by what was repaired.
func (c *cluster) repairs(t *testing.T, node string) map[string]uint64 {
	t.Helper()
	admin := c.Node(node).Admin()
	defer admin.Close()
	s, err := admin.Status(t.Context())
	c.must(t, err)
	return s.Repairs
}

// everybodyIsServed waits until one new connection of each kind and origin is answered.
func everybodyIsServed(t *testing.T, c *cluster) {
	t.Helper()
	for _, from := range []string{"shopper", "visitor", "n1", lab.OutsideName} {
		for _, w := range ways {
			r := w.to("web")
			r.Timeout = 200 * time.Millisecond
			var last traffic.Answer
			eventually(t, fmt.Sprintf("answer to %s over %s", from, w), func() bool {
				last = c.dial(t, from, r)
				return last.Outcome == traffic.OK
			})
		}
	}
}

// detach does what bpftool link detach does.
func (c *cluster) detach(node, pin string) error {
	l, err := link.LoadPinnedLink(c.stateFile(node, "bpf/lace/links/"+pin), nil)
	if err != nil {
		return err
	}
	return errors.Join(l.Detach(), l.Close())
}

// pin is the name of the pinned link of a device of n1.
func (w *wires) pin(device, direction string) string {
	w.t.Helper()
	return fmt.Sprintf("%d-%s", w.link(w.node, device).Attrs().Index, direction)
}

// setDownLace1 enters the private namespace for it.
func (c *cluster) setDownLace1(node string) error {
	ns, err := netns.GetFromPath(c.stateFile(node, "trunk.netns"))
	if err != nil {
		return err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.LinkByName("lace1")
	if err != nil {
		return err
	}
	return h.LinkSetDown(l)
}

// deleteRoutes takes away the routes of both service ranges.
func (w *wires) deleteRoutes() error {
	lace0 := w.link(w.node, "lace0")
	for _, p := range lab.ServiceRanges {
		dst := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
		r := &netlink.Route{LinkIndex: lace0.Attrs().Index, Dst: dst}
		if p.Addr().Is4() {
			r.Scope = netlink.SCOPE_LINK
		}
		if err := w.node.RouteDel(r); err != nil {
			return fmt.Errorf("route of %s: %w", p, err)
		}
	}
	return nil
}

// scribble changes a byte of a file in place.
func scribble(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{0xff, 0xff, 0xff}, 200)
	return errors.Join(err, f.Close())
}
