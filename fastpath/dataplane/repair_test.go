package dataplane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/counter"
)

// TestWhatIsTakenAwayIsPutBack takes one thing after the other from under the fast path:
// each is back soon, is logged and counted, and connections go on.
func TestWhatIsTakenAwayIsPutBack(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 2)
	n.serveEcho()
	n.publishLane(f, 1)
	f.start()
	n.routeServices()
	f.uses(1)
	flows := n.connect()
	for _, c := range []struct {
		what   counter.Repair
		name   string
		times  uint64
		spoil  func() error
		repair func() error // nil when it is put right
	}{
		{counter.RepairTrunk, "lace0 is set down", 1, func() error { return netlink.LinkSetDown(n.link("lace0")) }, n.up("lace0")},
		{counter.RepairTrunk, "lace1 is set down", 1, func() error {
			return n.inTrunk(f, func() error { return netlink.LinkSetDown(n.link("lace1")) })
		}, func() error { return n.inTrunk(f, n.up("lace1")) }},
		{counter.RepairTrunk, "lace0 gets a small MTU", 1, func() error { return netlink.LinkSetMTU(n.link("lace0"), 1280) }, n.hasMTU},
		{counter.RepairTrunk, "lace0 gets another address", 1, func() error {
			return netlink.LinkSetHardwareAddr(n.link("lace0"), net.HardwareAddr{2, 9, 9, 9, 9, 9})
		}, n.hasAddress},
		{counter.RepairTrunk, "rp_filter of lace0 is switched on", 1, func() error {
			return os.WriteFile("/proc/sys/net/ipv4/conf/lace0/rp_filter", []byte("1"), 0)
		}, func() error { return contains("/proc/sys/net/ipv4/conf/lace0/rp_filter", "0\n") }},
		{counter.RepairNamespace, "the namespace is unmounted", 1, func() error {
			return unix.Unmount(f.config.path("trunk.netns"), unix.MNT_DETACH)
		}, func() error { return isNamespace(f.config.path("trunk.netns")) }},
		{counter.RepairNamespace, "the namespace is unmounted and its file removed", 1, func() error {
			return errors.Join(unix.Unmount(f.config.path("trunk.netns"), unix.MNT_DETACH), os.Remove(f.config.path("trunk.netns")))
		}, func() error { return isNamespace(f.config.path("trunk.netns")) }},
		{counter.RepairProgram, "a program of the trunk is detached", 1, func() error { return f.detach("lace0-in") }, f.attached("lace0-in")},
		{counter.RepairProgram, "the program for the node's own packets is detached", 1, func() error { return f.detach("lace0-out") }, f.attached("lace0-out")},
		{counter.RepairProgram, "XDP is detached from the trunk", 1, func() error { return f.detach("lace1-xdp") }, f.attached("lace1-xdp")},
		{counter.RepairProgram, "a program of a pod is detached", 1, func() error { return f.detach(n.pinOf(n.client, "in")) }, f.attached(n.pinOf(n.client, "in"))},
		{counter.RepairProgram, "a program of the uplink is detached", 1, func() error { return f.detach(n.pinOf(n.wire, "out")) }, f.attached(n.pinOf(n.wire, "out"))},
		{counter.RepairLinkPin, "the pin of a program is removed", 1, func() error { return os.Remove(f.pin("links", n.pinOf(n.web, "in"))) }, f.attached(n.pinOf(n.web, "in"))},
		{counter.RepairMapPin, "the pin of the flow table is removed", 1, func() error { return os.Remove(f.pin("maps", "flows")) }, f.pinned("maps", "flows")},
		{counter.RepairMapPin, "the pin of the counters is removed", 1, func() error { return os.Remove(f.pin("maps", "counters")) }, f.pinned("maps", "counters")},
		{counter.RepairMapPin, "the pin of the affinity records is removed", 1, func() error { return os.Remove(f.pin("maps", "affinity")) }, f.pinned("maps", "affinity")},
		{counter.RepairSocket, "a worker's socket is taken out of the map", 1, func() error { return f.dropSocket(1) }, nil},
		{counter.RepairCounters, "the counter file is removed", 1, func() error { return os.Remove(f.config.path(counterFile)) }, f.has(counterFile)},
		{counter.RepairStatus, "fastpath.json is removed", 1, func() error { return os.Remove(f.config.path(statusFile)) }, f.has(statusFile)},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := f.repaired(c.what)
			spoilt := time.Now()
			n.must(c.spoil())
			f.eventually(c.name+" and repaired", func() bool {
				return f.repaired(c.what) >= before+c.times && (c.repair == nil || c.repair() == nil)
			})
			t.Logf("repaired after %v", time.Since(spoilt).Round(time.Millisecond))
			n.routeServices() // the agent's part
			n.goOn(flows)
			n.everybody()
		})
	}
	if got := f.totals().Gauges[counter.Broken]; got != 0 {
		t.Errorf("%d parts are broken in the end", got)
	}
	if said := strings.Count(f.log.String(), "repaired what somebody else"); said < 18 {
		t.Errorf("%d repairs are in the log, want 18 or more\n%s", said, f.log)
	}
	f.stop()
}

// TestWhatCannotBePutBackIsAnAlarm: a directory stands where a file has to be.
func TestWhatCannotBePutBackIsAnAlarm(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	n.must(os.Remove(f.config.path(counterFile)))
	f.inTheWay(counterFile)
	f.says("cannot be put right")
	n.converse(n.client, "tcp", netip.AddrPortFrom(vips[0], toWeb))
	n.must(os.RemoveAll(f.config.path(counterFile)))
	f.says("everything is in place again")
	f.eventually("the gauge falls", func() bool { return f.totals().Gauges[counter.Broken] == 0 })
	f.stop()
}

// TestFlowsOutliveAPinThatWasPutBack: what was put back outlives the process as what was
// there before did.
func TestFlowsOutliveAPinThatWasPutBack(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	n.publishLane(f, 1)
	f.start()
	n.routeServices()
	f.uses(1)
	flows := n.connect()
	for _, name := range []string{"flows", "flow_tags", "settings"} {
		n.must(os.Remove(f.pin("maps", name)))
	}
	n.must(os.Remove(f.pin("links", n.pinOf(n.client, "in"))))
	n.must(unix.Unmount(f.config.path("trunk.netns"), unix.MNT_DETACH))
	f.eventually("all is pinned again", func() bool {
		return f.repaired(counter.RepairMapPin) >= 3 && f.repaired(counter.RepairLinkPin) >= 1 && f.repaired(counter.RepairNamespace) >= 1
	})
	trunk := n.link("lace0").Attrs().Index
	f.kill()
	n.goOn(flows) // in the lane
	f.start()
	n.goOn(flows)
	if s := f.readStatus(); !s.FlowsKept || s.FlowsRestored < len(flows) {
		t.Errorf("flows kept: %t, restored: %d, want %d", s.FlowsKept, s.FlowsRestored, len(flows))
	}
	if now := n.link("lace0").Attrs().Index; now != trunk {
		t.Errorf("lace0 is device %d now, was %d: the trunk was made anew", now, trunk)
	}
	f.stop()
}

// TestPinsComeBackWithTheirFileSystem: without it nothing changes but that nothing outlives
// the process, which is an alarm; when it is mounted again, everything is pinned again.
func TestPinsComeBackWithTheirFileSystem(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	n.publishLane(f, 1)
	f.start()
	n.routeServices()
	f.uses(1)
	flows := n.connect()
	n.must(unix.Unmount(f.config.BPFFS, unix.MNT_DETACH))
	f.says("cannot be put right")
	f.eventually("the gauge rises", func() bool { return f.totals().Gauges[counter.Broken] > 0 })
	n.goOn(flows)
	n.everybody()
	n.must(unix.Mount("bpf", f.config.BPFFS, "bpf", 0, ""))
	f.says("everything is in place again")
	f.eventually("the gauge falls", func() bool { return f.totals().Gauges[counter.Broken] == 0 })
	f.kill()
	n.goOn(flows) // in the lane
	f.start()
	n.goOn(flows)
	if s := f.readStatus(); !s.FlowsKept || s.FlowsRestored < len(flows) {
		t.Errorf("flows kept: %t, restored: %d, want %d", s.FlowsKept, s.FlowsRestored, len(flows))
	}
	f.stop()
}

// connect opens a connection of each kind from the client and from the node to web, and
// has them handed over to the lane.
func (n *network) connect() (flows []net.Conn) {
	n.t.Helper()
	for _, vip := range vips {
		for _, kind := range []string{"tcp", "udp"} {
			for _, p := range []*pod{n.client, nil} {
				c, err := n.dial(p, kind, netip.AddrPortFrom(vip, toWeb))
				n.must(err)
				n.t.Cleanup(func() { c.Close() })
				for range 20 {
					n.must(talk(c, 100))
				}
				flows = append(flows, c)
			}
		}
	}
	return flows
}

func (n *network) goOn(flows []net.Conn) {
	n.t.Helper()
	for _, c := range flows {
		if err := talk(c, 1000); err != nil {
			n.t.Errorf("%s from %s to %s: %v", c.LocalAddr().Network(), c.LocalAddr(), c.RemoteAddr(), err)
		}
	}
}

func (n *network) up(name string) func() error {
	return func() error {
		if n.link(name).Attrs().Flags&net.FlagUp == 0 {
			return fmt.Errorf("%s is down", name)
		}
		return nil
	}
}

func (n *network) hasMTU() error {
	if got := n.link("lace0").Attrs().MTU; got != DefaultTrunkMTU {
		return fmt.Errorf("MTU %d", got)
	}
	return nil
}

func (n *network) hasAddress() error {
	if got := n.link("lace0").Attrs().HardwareAddr; got.String() != "02:4c:30:00:00:00" {
		return fmt.Errorf("address %s", got)
	}
	return nil
}

// inTrunk calls do inside the trunk's namespace.
func (n *network) inTrunk(f *fastpath, do func() error) (err error) {
	n.t.Helper()
	ns, err := os.Open(f.config.path("trunk.netns"))
	n.must(err)
	defer ns.Close()
	n.in(&pod{ns: ns}, func() { err = do() })
	return err
}

func (n *network) pinOf(p *pod, direction string) string {
	n.t.Helper()
	return fmt.Sprintf("%d-%s", n.link(p.device).Attrs().Index, direction)
}

func (f *fastpath) pin(kind, name string) string {
	return filepath.Join(f.config.BPFFS, "lace", kind, name)
}

// detach does what bpftool link detach does.
func (f *fastpath) detach(name string) error {
	l, err := link.LoadPinnedLink(f.pin("links", name), nil)
	if err != nil {
		return err
	}
	return errors.Join(l.Detach(), l.Close())
}

// attached wants the pinned link to be attached to a device.
func (f *fastpath) attached(name string) func() error {
	return func() error {
		l, err := link.LoadPinnedLink(f.pin("links", name), nil)
		if err != nil {
			return err
		}
		defer l.Close()
		what, err := l.Info()
		if err != nil {
			return err
		}
		if x := what.TCX(); x != nil && x.Ifindex != 0 {
			return nil
		}
		if x := what.XDP(); x != nil && x.Ifindex != 0 {
			return nil
		}
		return fmt.Errorf("%s is attached to nothing", name)
	}
}

func (f *fastpath) pinned(kind, name string) func() error {
	return func() error {
		m, err := ebpf.LoadPinnedMap(f.pin(kind, name), nil)
		if err != nil {
			return err
		}
		return m.Close()
	}
}

func (f *fastpath) has(file string) func() error {
	return func() error {
		_, err := os.Stat(f.config.path(file))
		return err
	}
}

// dropSocket takes a worker's socket out of the kernel's map.
func (f *fastpath) dropSocket(queue uint32) error {
	m, err := ebpf.LoadPinnedMap(f.pin("maps", "sockets"), nil)
	if err != nil {
		return err
	}
	return errors.Join(m.Delete(queue), m.Close())
}

// repaired counts repairs; 0 while there is no counter file.
func (f *fastpath) repaired(what counter.Repair) uint64 {
	r, err := counter.Open(f.config.path(counterFile))
	if err != nil {
		return 0
	}
	defer r.Close()
	return r.Totals().Gauges[what.Gauge()]
}

func contains(path, want string) error {
	b, err := os.ReadFile(path)
	if err == nil && string(b) != want {
		err = fmt.Errorf("%s holds %q", path, b)
	}
	return err
}

func isNamespace(path string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	if st.Type != unix.NSFS_MAGIC {
		return fmt.Errorf("%s is no namespace", path)
	}
	return nil
}
