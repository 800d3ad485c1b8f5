package xdp

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
)

func openTrunk(t testing.TB, state string, queues, mtu int) *Trunk {
	t.Helper()
	testenv.Privileged(t)
	tr, err := OpenTrunk(TrunkConfig{StateDir: state, Queues: queues, MTU: mtu, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("OpenTrunk: %v", err)
	}
	t.Cleanup(func() {
		tr.Close()
		if err := RemoveTrunk(state); err != nil {
			t.Errorf("RemoveTrunk: %v", err)
		}
	})
	return tr
}

// attrs reads both ends.
func (t *Trunk) attrs(tb testing.TB) (l0, l1 *netlink.LinkAttrs) {
	tb.Helper()
	l, err := netlink.LinkByIndex(t.Lace0)
	must(tb, err)
	l0 = l.Attrs()
	must(tb, t.Do(func() error {
		l, err := netlink.LinkByIndex(t.Lace1)
		if err == nil {
			l1 = l.Attrs()
		}
		return err
	}))
	return l0, l1
}

// TestTrunk: the pair is as the fast path needs it.
func TestTrunk(t *testing.T) {
	tr := openTrunk(t, t.TempDir(), 2, 1700)
	l0, l1 := tr.attrs(t)
	for _, l := range []*netlink.LinkAttrs{l0, l1} {
		if l.MTU != 1700 || l.NumTxQueues != 2 || l.NumRxQueues != 2 {
			t.Errorf("%s has MTU %d, %d and %d queues; want 1700, 2 and 2", l.Name, l.MTU, l.NumTxQueues, l.NumRxQueues)
		}
		if l.RawFlags&unix.IFF_UP == 0 || l.RawFlags&unix.IFF_NOARP == 0 {
			t.Errorf("%s has flags %#x; want it up and without ARP", l.Name, l.RawFlags)
		}
	}
	if [6]byte(l0.HardwareAddr) != tr.MAC {
		t.Errorf("lace0 has address %v, the trunk says %x", l0.HardwareAddr, tr.MAC)
	}
	if on, err := ethtool(lace0, ethtoolValue{cmd: getTxChecksum}); err != nil || on != 0 {
		t.Errorf("checksum offload of lace0 is %d (%v): partial checksums would reach Go", on, err)
	}
	if on, err := ethtool(lace0, ethtoolValue{cmd: getGRO}); err != nil || on != 1 {
		t.Errorf("GRO of lace0 is %d (%v)", on, err)
	}
	link0, err := netlink.LinkByIndex(tr.Lace0)
	must(t, err)
	if a, err := netlink.AddrList(link0, netlink.FAMILY_ALL); err != nil || len(a) > 0 {
		t.Errorf("lace0 has addresses %v (%v); it should be silent", a, err)
	}
	b, err := os.ReadFile("/proc/sys/net/ipv4/conf/lace0/rp_filter")
	if err != nil || strings.TrimSpace(string(b)) != "0" {
		t.Errorf("rp_filter of lace0 is %q (%v)", b, err)
	}
	if _, err := linkByName(lace1); err != nil {
		t.Error(err)
	}
	if l, _ := linkByName(lace1); l != nil {
		t.Error("lace1 is in the node's namespace, where others could inject")
	}
	if in, out, err := tr.Dropped(); err != nil || in+out != 0 {
		t.Errorf("%d and %d packets dropped on a trunk that carried none (%v)", in, out, err)
	}
}

// TestTrunkDropped: what is lost on either way is counted as lost on that way.
func TestTrunkDropped(t *testing.T) {
	tr := openTrunk(t, t.TempDir(), 1, 1500)
	inside := func(f func()) { must(t, tr.Do(func() error { f(); return nil })) }
	setMTU := func(name string, mtu int) {
		l, err := linkByName(name)
		must(t, err)
		must(t, netlink.LinkSetMTU(l, mtu))
	}
	// What is longer than the other end takes is lost there like what finds its ring full.
	inside(func() { setMTU(lace1, 1280) })
	transmit(t, tr.Lace0, 1400)
	inside(func() { setMTU(lace1, 1500) })
	setMTU(lace0, 1280)
	inside(func() { transmit(t, tr.Lace1, 1400) })
	inside(func() { transmit(t, tr.Lace1, 1400) })
	toGo, fromGo, err := tr.Dropped()
	if err != nil || toGo != 1 || fromGo != 2 {
		t.Errorf("%d packets lost on their way to Go and %d on their way back (%v), want 1 and 2", toGo, fromGo, err)
	}
}

// transmit sends a frame of so many bytes out of a device of the thread's namespace. The
// kernel may say that it was lost.
func transmit(t *testing.T, ifindex, length int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	if err := unix.Sendto(fd, make([]byte, length), 0, &unix.SockaddrLinklayer{Ifindex: ifindex}); err != unix.ENOBUFS {
		must(t, err)
	}
}

// TestTrunkAgain: a trunk that fits is taken over, one that does not is made anew.
func TestTrunkAgain(t *testing.T) {
	for does, c := range map[string]struct {
		between func(t *testing.T, state string, tr *Trunk)
		queues  int
		mtu     int
		kept    bool
	}{
		"as it was":                      {nil, 2, 1500, true},
		"with another MTU":               {nil, 2, 3000, true},
		"with another number of queues":  {nil, 1, 1500, false},
		"set down by somebody":           {func(t *testing.T, _ string, _ *Trunk) { l, _ := linkByName(lace0); must(t, netlink.LinkSetDown(l)) }, 2, 1500, true},
		"with its offload switched on":   {func(t *testing.T, _ string, _ *Trunk) { must(t, setOffload(lace0, getTxChecksum, setTxChecksum, 1)) }, 2, 1500, true},
		"with its devices removed":       {func(t *testing.T, _ string, _ *Trunk) { must(t, removeLink(lace0)) }, 2, 1500, false},
		"with its namespace's file gone": {func(t *testing.T, state string, _ *Trunk) { must(t, dismount(namespacePath(state))) }, 2, 1500, false},
		"with a plain file instead": {func(t *testing.T, state string, _ *Trunk) {
			must(t, dismount(namespacePath(state)))
			must(t, os.WriteFile(namespacePath(state), []byte("damaged"), 0o600))
		}, 2, 1500, false},
		"with another pair of that name": {func(t *testing.T, _ string, _ *Trunk) {
			must(t, removeLink(lace0))
			veth(t, lace0)
		}, 2, 1500, false},
	} {
		t.Run(does, func(t *testing.T) {
			state := t.TempDir()
			before := openTrunk(t, state, 2, 1500)
			if c.between != nil {
				c.between(t, state, before)
			}
			after := openTrunk(t, state, c.queues, c.mtu)
			if kept := before.Lace0 == after.Lace0; kept != c.kept {
				t.Errorf("lace0 was %d and is %d; kept %v, want %v", before.Lace0, after.Lace0, kept, c.kept)
			}
			l0, l1 := after.attrs(t)
			for _, l := range []*netlink.LinkAttrs{l0, l1} {
				if l.MTU != c.mtu || l.NumTxQueues != c.queues || l.RawFlags&unix.IFF_UP == 0 {
					t.Errorf("%s: MTU %d, %d queues, flags %#x", l.Name, l.MTU, l.NumTxQueues, l.RawFlags)
				}
			}
			if on, err := ethtool(lace0, ethtoolValue{cmd: getTxChecksum}); err != nil || on != 0 {
				t.Errorf("checksum offload of lace0 is %d (%v)", on, err)
			}
		})
	}
}

// TestTrunkErrors: values out of range, and a device that is not ours, are refused in words.
func TestTrunkErrors(t *testing.T) {
	testenv.Privileged(t)
	foreign := func(t *testing.T) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = lace0
		b := &netlink.Bridge{LinkAttrs: attrs}
		must(t, netlink.LinkAdd(b))
		t.Cleanup(func() { must(t, netlink.LinkDel(b)) })
	}
	own := func(t *testing.T, state string) {
		must(t, os.WriteFile(namespacePath(state), nil, 0o600))
		must(t, unix.Mount("/proc/thread-self/ns/net", namespacePath(state), "none", unix.MS_BIND, ""))
		t.Cleanup(func() { must(t, dismount(namespacePath(state))) })
	}
	for does, c := range map[string]struct {
		config  TrunkConfig
		prepare func(t *testing.T, state string)
		says    string
	}{
		"no queue":          {TrunkConfig{Queues: 0, MTU: 1500}, nil, "trunk of 0 queues: want 1 to 64"},
		"too many queues":   {TrunkConfig{Queues: 65, MTU: 1500}, nil, "trunk of 65 queues"},
		"too large an MTU":  {TrunkConfig{Queues: 1, MTU: 3507}, nil, "trunk MTU 3507: want 1280 to 3506"},
		"too small an MTU":  {TrunkConfig{Queues: 1, MTU: 1279}, nil, "trunk MTU 1279"},
		"another's device":  {TrunkConfig{Queues: 1, MTU: 1500}, func(t *testing.T, _ string) { foreign(t) }, "lace0 exists and is a bridge"},
		"our own namespace": {TrunkConfig{Queues: 1, MTU: 1500}, own, "the node's own network namespace"},
	} {
		t.Run(does, func(t *testing.T) {
			c.config.StateDir = t.TempDir()
			if c.prepare != nil {
				c.prepare(t, c.config.StateDir)
			}
			tr, err := OpenTrunk(c.config)
			if err == nil {
				must(t, tr.Remove())
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q does not say %q", err, c.says)
			}
			if err := dismount(filepath.Join(c.config.StateDir, "trunk.netns")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRemoveTrunk: afterwards neither devices nor namespace nor file are there.
func TestRemoveTrunk(t *testing.T) {
	state := t.TempDir()
	tr := openTrunk(t, state, 1, 1500)
	must(t, tr.Close())
	for range 2 {
		must(t, RemoveTrunk(state))
		if l, err := linkByName(lace0); l != nil || err != nil {
			t.Errorf("lace0 is still there (%v)", err)
		}
		if _, err := os.Lstat(namespacePath(state)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the namespace's file is still there (%v)", err)
		}
	}
	other := openTrunk(t, state, 1, 1500)
	must(t, other.Remove())
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("left in the state directory: %v (%v)", left, err)
	}
}

// TestAttachTrunk: the trunk's programs are attached natively, updated in place by the next
// process, and attached anew to a trunk that was made anew.
func TestAttachTrunk(t *testing.T) {
	bpffs, state := mountBPF(t), t.TempDir()
	n := &node{o: open(t, bpffs)}
	tr := openTrunk(t, state, 2, 3506)
	must(t, n.o.AttachTrunk(tr))
	if n.o.Mode() != Native {
		t.Errorf("XDP on the trunk is %s", n.o.Mode())
	}
	wantPrograms(t, tr.Lace0, []string{"in from_go", "out from_host"})
	want := settings{Layout: Layout, Trunk: uint32(tr.Lace0), Queues: 2, MTU: 3506, MAC: tr.MAC}
	if d := cmp.Diff(want, n.o.settings); d != "" {
		t.Errorf("settings (-want +got)\n%s", d)
	}
	must(t, n.o.SyncPorts(nil)) // the trunk's links are no ports'
	links := n.linkIDs(t)
	if len(links) != 3 {
		t.Errorf("links %v, want three", links)
	}
	must(t, n.o.Close())

	n.o = open(t, bpffs)
	must(t, n.o.AttachTrunk(openTrunk(t, state, 2, 3506)))
	if d := cmp.Diff(links, n.linkIDs(t)); d != "" || n.o.Mode() != Native {
		t.Errorf("%s; the links were made anew\n%s", n.o.Mode(), d)
	}

	again := openTrunk(t, state, 1, 1500)
	must(t, n.o.AttachTrunk(again))
	wantPrograms(t, again.Lace0, []string{"in from_go", "out from_host"})
	for name, id := range n.linkIDs(t) {
		if links[name] == id {
			t.Errorf("link %s is still that of the old trunk", name)
		}
	}
}

// TestGenericMode: the mode is that of the link in force, whoever made it.
func TestGenericMode(t *testing.T) {
	n := &node{o: open(t, mountBPF(t))}
	tr := openTrunk(t, t.TempDir(), 1, 1500)
	must(t, tr.Do(func() error {
		l, err := link.AttachXDP(link.XDPOptions{Program: n.o.bpf.ToGo, Interface: tr.Lace1, Flags: link.XDPGenericMode})
		if err != nil {
			return err
		}
		defer l.Close()
		return l.Pin(n.o.pins.linkPath(linkToGo))
	}))
	must(t, n.o.AttachTrunk(tr))
	if n.o.Mode() != Generic {
		t.Errorf("a link of the generic hook was taken over and is called %s", n.o.Mode())
	}
}

// TestAttachXDP: a device without the driver's hook gets the generic one, one whose MTU is
// too large gets an error that says so.
func TestAttachXDP(t *testing.T) {
	o := open(t, mountBPF(t))
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "tbridge"
	b := &netlink.Bridge{LinkAttrs: attrs}
	must(t, netlink.LinkAdd(b))
	t.Cleanup(func() { must(t, netlink.LinkDel(b)) })
	l, err := o.attachXDP(b.Index, 1500)
	must(t, err)
	defer l.Close()
	if mode, err := xdpMode(b.Index); mode != Generic || err != nil {
		t.Errorf("XDP on a bridge is %q (%v), want %s", mode, err, Generic)
	}

	large := veth(t, "tlarge")
	for _, name := range []string{"tlarge", "tlargep"} {
		l, err := netlink.LinkByName(name)
		must(t, err)
		must(t, netlink.LinkSetMTU(l, 4000))
	}
	if l, err := o.attachXDP(large, 4000); err == nil || !strings.Contains(err.Error(), "MTU 4000 is too large") {
		t.Errorf("XDP at MTU 4000 gives %v, %v", l, err)
	}
	if mode, err := xdpMode(large); err == nil {
		t.Errorf("a device without XDP is in mode %s", mode)
	}
}
