package xdp

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// programsOn names the programs attached to a device, direction first.
func programsOn(t *testing.T, ifindex int) (names []string) {
	t.Helper()
	for _, d := range []struct {
		word   string
		attach ebpf.AttachType
	}{{"in", ebpf.AttachTCXIngress}, {"out", ebpf.AttachTCXEgress}} {
		r, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: d.attach})
		must(t, err)
		for _, at := range r.Programs {
			p, err := ebpf.NewProgramFromID(at.ID)
			must(t, err)
			loaded, err := p.Info()
			must(t, err)
			names = append(names, d.word+" "+loaded.Name)
			p.Close()
		}
	}
	return names
}

// linkIDs maps the names of the pinned links to the kernel's ids: a link that was made anew
// has another.
func (n *node) linkIDs(t *testing.T) map[string]link.ID {
	t.Helper()
	names, err := n.o.pins.links()
	must(t, err)
	ids := map[string]link.ID{}
	for _, name := range names {
		l, err := link.LoadPinnedLink(n.o.pins.linkPath(name), nil)
		must(t, err)
		at, err := l.Info()
		must(t, err)
		ids[name] = at.ID
		l.Close()
	}
	return ids
}

var (
	onPod    = []string{"in from_pod", "out to_port"}
	onUplink = []string{"in from_uplink", "out to_port"}
)

func wantPrograms(t *testing.T, ifindex int, want []string) {
	t.Helper()
	if d := cmp.Diff(want, programsOn(t, ifindex)); d != "" {
		t.Errorf("programs on device %d (-want +got)\n%s", ifindex, d)
	}
}

// TestAttach: each kind of port gets its programs, and only it.
func TestAttach(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	wantPrograms(t, n.pod, onPod)
	wantPrograms(t, n.uplink, onUplink)
	before := n.linkIDs(t)
	must(t, n.o.SyncPorts(n.ports()))
	if d := cmp.Diff(before, n.linkIDs(t)); d != "" {
		t.Errorf("a second sync changed links\n%s", d)
	}
	must(t, n.o.SyncPorts(n.ports()[:2]))
	wantPrograms(t, n.pod, onPod)
	wantPrograms(t, n.uplink, nil)
	wantPrograms(t, n.other, nil)
	frame := from("10.1.0.3", "10.96.0.1", 6, tcp(1, 2))
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), untouched(frame))
	must(t, n.o.SyncPorts(nil))
	wantPrograms(t, n.pod, nil)
	if ids := n.linkIDs(t); len(ids) > 0 {
		t.Errorf("pins left without ports: %v", ids)
	}
}

// TestKind: a device that becomes a port of another kind gets that kind's program in place.
func TestKind(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	before := n.linkIDs(t)
	ports := n.ports()
	ports[1].Kind = table.PortUplink
	must(t, n.o.SyncPorts(ports))
	wantPrograms(t, n.pod, onUplink)
	must(t, n.o.SyncPorts(n.ports()))
	wantPrograms(t, n.pod, onPod)
	if d := cmp.Diff(before, n.linkIDs(t)); d != "" {
		t.Errorf("links were made anew\n%s", d)
	}
}

// TestVanishedDevice: a device that vanishes under its port is named, its pins go, and what
// Go still sends to it is counted.
func TestVanishedDevice(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	l, err := netlink.LinkByIndex(n.pod)
	must(t, err)
	must(t, netlink.LinkDel(l))
	if err := n.o.SyncPorts(n.ports()); err == nil || !strings.Contains(err.Error(), "port 258 (tpod): device") {
		t.Errorf("error %v, want it to name the port", err)
	}
	if ids := n.linkIDs(t); len(ids) != 6 {
		t.Errorf("%d links are pinned, want two for each of three devices: %v", len(ids), ids)
	}
	frame := onTrunk(from("10.1.0.3", "10.1.0.2", 6, tcp(1, 2)), 0x49, 0, podID)
	want := outcome{dropped, frame, 0, once(frame, reason.UnknownPortID.String())}
	check(t, n.run(t, n.o.bpf.FromGo, frame, skb{Ifindex: 1}), want)
}

// TestUpdateInPlace: a process of another build puts its programs into the links that are
// there, so that no packet slips by, and finishes what happened while it was away.
func TestUpdateInPlace(t *testing.T) {
	bpffs := mountBPF(t)
	n := newNode(t, open(t, bpffs))
	links, programs := n.linkIDs(t), firstProgram(t, n.pod)
	must(t, n.o.Close())
	wantPrograms(t, n.pod, onPod)
	must(t, os.RemoveAll(pinsUnder(bpffs).programs())) // those of this build, which loads its own then

	n.o = open(t, bpffs)
	if firstProgram(t, n.pod) != programs {
		t.Error("a program was replaced before the maps were filled")
	}
	must(t, n.o.SyncPorts(n.ports()[:3])) // seven and the uplink went meanwhile
	kept := n.linkIDs(t)
	for name, id := range kept {
		if links[name] != id {
			t.Errorf("link %s was made anew", name)
		}
	}
	if len(kept) != 4 {
		t.Errorf("links %v, want those of two pods", kept)
	}
	if firstProgram(t, n.pod) == programs {
		t.Error("the old program is still attached")
	}
	wantPrograms(t, n.pod, onPod)
	wantPrograms(t, n.uplink, nil)
}

func firstProgram(t *testing.T, ifindex int) ebpf.ProgramID {
	t.Helper()
	r, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: ebpf.AttachTCXIngress})
	must(t, err)
	if len(r.Programs) == 0 {
		t.Fatalf("nothing is attached to device %d", ifindex)
	}
	return r.Programs[0].ID
}

// TestReplacedDevice: a port whose device was removed and made again is attached to again,
// under a new index, under the old one, and under a new name.
func TestReplacedDevice(t *testing.T) {
	again := func(t *testing.T, n *node, index int) {
		l, err := netlink.LinkByIndex(n.pod)
		must(t, err)
		must(t, netlink.LinkDel(l))
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.Index = "tpod", index
		v := netlink.NewVeth(attrs)
		v.PeerName = "tpodp"
		must(t, netlink.LinkAdd(v))
		l, err = netlink.LinkByName("tpod")
		must(t, err)
		n.pod = l.Attrs().Index
	}
	for does, change := range map[string]func(t *testing.T, n *node) []table.Port{
		"with another index": func(t *testing.T, n *node) []table.Port {
			again(t, n, 0)
			return n.ports()
		},
		"with the same index": func(t *testing.T, n *node) []table.Port {
			index := n.pod
			again(t, n, index)
			if n.pod != index {
				t.Fatalf("the device has index %d, not %d again", n.pod, index)
			}
			return n.ports()
		},
		"renamed": func(t *testing.T, n *node) []table.Port {
			l, err := netlink.LinkByIndex(n.pod)
			must(t, err)
			must(t, netlink.LinkSetName(l, "tpod.new"))
			ports := n.ports()
			ports[1].Name = portName("tpod.new")
			return ports
		},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(does+map[bool]string{true: ", while the process was away"}[restart], func(t *testing.T) {
				bpffs := mountBPF(t)
				n := newNode(t, open(t, bpffs))
				if restart {
					must(t, n.o.Close())
				}
				ports := change(t, n)
				if restart {
					n.o = open(t, bpffs)
				}
				must(t, n.o.SyncPorts(ports))
				wantPrograms(t, n.pod, onPod)
				if ids := n.linkIDs(t); len(ids) != 8 {
					t.Errorf("%d links are pinned, want two for each of four devices: %v", len(ids), ids)
				}
				frame := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
				check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), punted(frame, podID, packet.PuntVIP))
			})
		}
	}
}

// TestBadPorts: a port that cannot be is named and left out; the others work.
func TestBadPorts(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	good := table.Port{ID: podID, Kind: table.PortPod, Ifindex: uint32(n.pod), Name: portName("tpod")}
	for does, c := range map[string]struct {
		bad  table.Port
		says string
	}{
		"id 0":                           {table.Port{Kind: table.PortPod, Ifindex: 1}, "port 0: ids go from 1"},
		"an id beyond the map":           {table.Port{ID: 4096, Kind: table.PortPod, Ifindex: 1}, "port 4096"},
		"an id that is there twice":      {table.Port{ID: podID, Kind: table.PortPod, Ifindex: uint32(n.other)}, "port 258 is there twice"},
		"an unknown kind":                {table.Port{ID: 9, Kind: 4, Ifindex: 1}, "kind 4"},
		"a second host":                  {table.Port{ID: 9, Kind: table.PortHost}, "port 9 has kind 1"},
		"a pod with the host's id":       {table.Port{ID: table.HostPort, Kind: table.PortPod, Ifindex: 1}, "port 1 has kind 2"},
		"no device":                      {table.Port{ID: 9, Kind: table.PortPod}, "port 9 has no device"},
		"a device that another port has": {table.Port{ID: 9, Kind: table.PortUplink, Ifindex: uint32(n.pod)}, "ports 258 and 9 share device"},
		"a device that is gone":          {table.Port{ID: 9, Kind: table.PortPod, Ifindex: 1 << 20, Name: portName("gone0")}, "port 9 (gone0): device 1048576"},
		"a device that is not Ethernet":  {table.Port{ID: 9, Kind: table.PortPod, Ifindex: 1, Name: portName("lo")}, "only Ethernet"},
	} {
		t.Run(does, func(t *testing.T) {
			must(t, n.o.SyncPorts(nil))
			err := n.o.SyncPorts([]table.Port{good, c.bad})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want it to say %q", err, c.says)
			}
			wantPrograms(t, n.pod, onPod)
			if c.bad.ID == 9 {
				frame := onTrunk(from("10.1.0.3", "10.1.0.2", 6, tcp(1, 2)), 0x49, 0, 9)
				check(t, n.run(t, n.o.bpf.FromGo, frame, skb{Ifindex: 1}), outcome{dropped, frame, 0, once(frame, reason.UnknownPortID.String())})
			}
			if got := programsOn(t, 1); len(got) > 0 {
				t.Errorf("programs on lo: %v", got)
			}
		})
	}
}

// TestForeignLink: what lies in the place of a link is replaced; another's program on the
// same hook stays, behind ours.
func TestForeignLink(t *testing.T) {
	bpffs := mountBPF(t)
	n := newNode(t, open(t, bpffs))
	theirs, err := link.AttachTCX(link.TCXOptions{Interface: n.pod, Program: n.o.bpf.FromGo, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
	must(t, err)
	defer theirs.Close()
	name := fmt.Sprintf("%d-in", n.pod)
	must(t, n.o.detach(name))
	must(t, n.o.bpf.Claims.Pin(n.o.pins.linkPath(name)))
	must(t, n.o.SyncPorts(n.ports()))
	wantPrograms(t, n.pod, []string{"in from_pod", "in from_go", "out to_port"})
	must(t, n.o.SyncPorts(nil))
	wantPrograms(t, n.pod, []string{"in from_go"})
}

// TestLargePort: a device whose packets the trunk cannot carry is named once, and again
// when its MTU changes.
func TestLargePort(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	var log bytes.Buffer
	n.o.log = slog.New(slog.NewTextHandler(&log, nil))
	for _, step := range []struct {
		mtu  uint32
		says string
	}{
		{1500, ""}, {1501, "device=tpod mtu=1501 trunk_mtu=1500"}, {1501, ""}, {9000, "device=tpod mtu=9000 trunk_mtu=1500"},
	} {
		log.Reset()
		ports := n.ports()
		ports[1].MTU = step.mtu
		must(t, n.o.SyncPorts(ports))
		if got := log.String(); step.says == "" && got != "" || !strings.Contains(got, step.says) {
			t.Errorf("MTU %d: the log says %q, want %q", step.mtu, got, step.says)
		}
	}
}
