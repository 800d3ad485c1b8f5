package xdp

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

var onePair = pair{client: "10.1.0.2", clientPort: 1, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}

// TestReopen: a process that starts again finds its flows, claims, sources, ports and
// counters, and the programs know them before anything was written.
func TestReopen(t *testing.T) {
	bpffs := mountBPF(t)
	o := open(t, bpffs)
	if o.Opened().Kept {
		t.Error("a flow table was kept where there was none")
	}
	n := newNode(t, o)
	n.insert(t, onePair, conntrack.ModeGo)
	reply := from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 1))
	n.run(t, o.bpf.FromPod, reply, skb{Ifindex: uint32(n.other)})
	before, err := o.Counters()
	must(t, err)
	must(t, o.Close())

	n.o = open(t, bpffs)
	if d := cmp.Diff(Opened{Kept: true, Programs: true}, n.o.Opened()); d != "" {
		t.Errorf("opened again (-want +got)\n%s", d)
	}
	after, err := n.o.Counters()
	must(t, err)
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("counters changed\n%s", d)
	}
	check(t, n.run(t, n.o.bpf.FromPod, reply, skb{Ifindex: uint32(n.other)}), punted(reply, otherID, packet.PuntFlow))
	syn := from("fd00::2", "fd96::1", 6, tcp(1000, 80))
	check(t, n.run(t, n.o.bpf.FromPod, syn, skb{Ifindex: uint32(n.pod)}), punted(syn, podID, packet.PuntVIP))
	spoofed := from("fd00::3", "fd96::1", 6, tcp(1000, 80))
	check(t, n.run(t, n.o.bpf.FromPod, spoofed, skb{Ifindex: uint32(n.pod)}), refused(spoofed, reason.SpoofedSource))
}

// TestDamagedPins: whatever lies in the place of a map is removed and named, and the node
// starts clean; what is sound is kept.
func TestDamagedPins(t *testing.T) {
	another := func(t *testing.T, path string, spec ebpf.MapSpec) {
		must(t, os.RemoveAll(path))
		m, err := ebpf.NewMap(&spec)
		must(t, err)
		defer m.Close()
		must(t, m.Pin(path))
	}
	for does, c := range map[string]struct {
		damage   func(t *testing.T, o *Objects, p pins)
		replaced []string
		lost     int
		says     string
		programs bool // none had to be loaded, for no map is another
		unknown  bool // nobody can say how many flows were lost
	}{
		"a flow table of another size is given up, its flows counted": {
			func(t *testing.T, o *Objects, p pins) {
				must(t, o.Close())
				bigger, err := Open(Config{BPFFS: filepath.Dir(string(p)), FlowSlots: 4096, Log: slog.New(slog.DiscardHandler)})
				must(t, err)
				defer bigger.Close()
				found := bigger.Opened()
				slices.Sort(found.Replaced)
				if d := cmp.Diff(Opened{Replaced: []string{"flow_tags", "flows"}, LostFlows: 1}, found); d != "" {
					t.Errorf("opened larger (-want +got)\n%s", d)
				}
			}, []string{"flow_tags", "flows"}, 0, "MaxEntries: 4097 changed to 1025", false, false},
		"a program in the place of a map": {
			func(t *testing.T, o *Objects, p pins) {
				must(t, os.Remove(p.mapPath("claims")))
				must(t, o.bpf.ToGo.Pin(p.mapPath("claims")))
			}, []string{"claims"}, 0, "claims", false, false},
		"a directory in the place of a map": {
			func(t *testing.T, o *Objects, p pins) {
				must(t, os.Remove(p.mapPath("ports")))
				must(t, os.Mkdir(p.mapPath("ports"), 0o700))
			}, []string{"ports"}, 0, "ports", false, false},
		"a flow table of other slots": {
			func(t *testing.T, o *Objects, p pins) {
				another(t, p.mapPath("flows"), ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 64, MaxEntries: 1025})
			}, []string{"flows"}, 0, "flows_lost=unknown", false, true},
		"the names of flow table and tags are swapped: both are given up, and the flows counted where they lie": {
			func(t *testing.T, o *Objects, p pins) { swap(t, p.mapPath("flows"), p.mapPath("flow_tags")) },
			[]string{"flow_tags", "flows"}, 1, "flows_lost=1", false, false},
		"the names of two maps of one shape are swapped": {
			func(t *testing.T, o *Objects, p pins) {
				swap(t, p.mapPath("backend_filter"), p.mapPath("claim_filter"))
			},
			[]string{"backend_filter", "claim_filter"}, 0, `it is the map`, false, false},
		"a flow table that is gone is missed, its flows cannot be counted": {
			func(t *testing.T, o *Objects, p pins) { must(t, os.Remove(p.mapPath("flows"))) }, nil, 0, "flows_lost=unknown", false, true},
		"tags of another size are made afresh, the flows stay": {
			func(t *testing.T, o *Objects, p pins) {
				another(t, p.mapPath("flow_tags"), ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 64, Flags: unix.BPF_F_MMAPABLE})
			}, []string{"flow_tags"}, 0, "MaxEntries", false, false},
		"missing tags are made, the flows stay": {
			func(t *testing.T, o *Objects, p pins) { must(t, os.Remove(p.mapPath("flow_tags"))) }, nil, 0, "", false, false},
		"tags of something else are made right, the flows stay": {
			func(t *testing.T, o *Objects, p pins) { copy(o.tags, bytes.Repeat([]byte{0xa5}, len(o.tags))) }, nil, 0, "", true, false},
		"a hash in the place of the counters": {
			func(t *testing.T, o *Objects, p pins) {
				another(t, p.mapPath("counters"), ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 16, MaxEntries: 80})
			}, []string{"counters"}, 0, "Type", false, false},
		"a missing map is made and nothing else touched": {
			func(t *testing.T, o *Objects, p pins) { must(t, os.Remove(p.mapPath("sources"))) }, nil, 0, "", false, false},
		"maps of another layout are given up together": {
			func(t *testing.T, o *Objects, p pins) {
				s := o.settings
				s.Layout = Layout + 1
				must(t, o.set(s))
			}, []string{"backend_filter", "backend_gens", "claim_filter", "claims", "counters", "devices", "flow_tags", "flows", "frontend_gens", "low_devices", "police", "police_ports", "police_prefixes", "ports", "settings", "sockets", "sources", "target_gens"}, 1, "layout 5", false, false},
	} {
		t.Run(does, func(t *testing.T) {
			bpffs := mountBPF(t)
			o := open(t, bpffs)
			n := newNode(t, o)
			n.insert(t, onePair, conntrack.ModeGo)
			c.damage(t, o, pinsUnder(bpffs))
			o.Close()

			var log bytes.Buffer
			again, err := Open(Config{BPFFS: bpffs, FlowSlots: 1024, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatalf("the node does not start: %v", err)
			}
			t.Cleanup(func() { again.Close() })
			got := again.Opened()
			slices.Sort(got.Replaced)
			kept := !c.unknown && !slices.Contains(c.replaced, "flows")
			want := Opened{Kept: kept, Uncounted: c.unknown, Programs: c.programs, Replaced: c.replaced, LostFlows: c.lost}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if !strings.Contains(log.String(), c.says) || c.says == "" && log.Len() > 0 {
				t.Errorf("the log says %q, want it to say %q", log.String(), c.says)
			}
			// And it works.
			flows, _, err := conntrack.Map(again.FlowMemory())
			must(t, err)
			fwd, _ := onePair.flows()
			if found := flows.Lookup(&fwd.Tuple, &fwd); found != want.Kept {
				t.Errorf("the flow is there: %v, want %v", found, want.Kept)
			}
			must(t, again.SyncClaims(n.claims()))
			must(t, again.SyncSources(n.addresses()))
			must(t, again.SyncPorts(n.ports()))
		})
	}
}

// swap exchanges the names of two pins.
func swap(t *testing.T, one, other string) {
	t.Helper()
	must(t, unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE))
}

// TestLostFilter: claims that outlived their filter are claimed all the same.
func TestLostFilter(t *testing.T) {
	bpffs := mountBPF(t)
	n := newNode(t, open(t, bpffs))
	must(t, n.o.Close())
	must(t, os.Remove(pinsUnder(bpffs).mapPath("claim_filter")))
	n.o = open(t, bpffs)
	frame := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), punted(frame, podID, packet.PuntVIP))
}

// TestResetFlows: a table that conntrack refuses can be emptied in place; the flows are
// counted and no longer found.
func TestResetFlows(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insert(t, onePair, conntrack.ModeGo)
	copy(n.o.flows, "not a header of a flow table")
	if _, _, err := conntrack.Map(n.o.FlowMemory()); !errors.Is(err, conntrack.ErrLayout) {
		t.Fatalf("a damaged header gives %v, want %v", err, conntrack.ErrLayout)
	}
	if lost := n.o.ResetFlows(); lost != 1 || n.o.Opened().LostFlows != 1 {
		t.Errorf("%d flows lost, %+v; want 1", lost, n.o.Opened())
	}
	if _, r, err := conntrack.Map(n.o.FlowMemory()); err != nil || !r.Fresh {
		t.Errorf("the emptied table: %+v, %v; want a fresh one", r, err)
	}
	frame := from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 1))
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), untouched(frame))
}

// TestOpenErrors: what is wrong with the arguments is said, with what to do.
func TestOpenErrors(t *testing.T) {
	testenv.Privileged(t)
	for does, c := range map[string]struct {
		config Config
		says   string
	}{
		"no slots":                 {Config{BPFFS: "/sys/fs/bpf"}, "0 slots"},
		"a directory that is none": {Config{BPFFS: "/nowhere/at/all", FlowSlots: 8}, "/nowhere/at/all"},
		"an ordinary file system":  {Config{BPFFS: t.TempDir(), FlowSlots: 8}, "mount -t bpf"},
	} {
		t.Run(does, func(t *testing.T) {
			o, err := Open(c.config)
			if err == nil {
				o.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q does not say %q", err, c.says)
			}
		})
	}
}

// TestSetErrors: values that the programs could not use are refused.
func TestSetErrors(t *testing.T) {
	o := open(t, mountBPF(t))
	for does, c := range map[string]struct {
		err  error
		says string
	}{
		"no bucket":                        {o.SetFlowKeys([10]uint32{}, 0), "0 buckets"},
		"a number that is no power of two": {o.SetFlowKeys([10]uint32{}, 3), "3 buckets"},
		"more buckets than the table has":  {o.SetFlowKeys([10]uint32{}, 256), "256 buckets"},
		"a queue below 0":                  {o.SetSocket(-1, 0), "queue -1"},
		"a queue beyond the map":           {o.SetSocket(64, 0), "queue 64"},
		"a file that is no socket":         {o.SetSocket(0, 0), "socket 0 for queue 0"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: error %v, want it to say %q", does, c.err, c.says)
		}
	}
	must(t, o.SetFlowKeys([10]uint32{}, 128))
}

// TestCleanup: afterwards nothing is pinned and nothing attached, however often it is done.
func TestCleanup(t *testing.T) {
	bpffs := mountBPF(t)
	n := newNode(t, open(t, bpffs))
	if len(programsOn(t, n.pod)) == 0 {
		t.Fatal("nothing is attached; the test would prove nothing")
	}
	must(t, Cleanup(bpffs)) // beside the running process
	must(t, n.o.Close())
	if _, err := os.Stat(string(pinsUnder(bpffs))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of pins is still there (%v)", err)
	}
	for _, ifindex := range []int{n.pod, n.other, n.uplink, n.seven} {
		if left := programsOn(t, ifindex); len(left) > 0 {
			t.Errorf("left on device %d: %v", ifindex, left)
		}
	}
	must(t, Cleanup(bpffs))
}

// TestOpenCounters: another process reads what the programs count, and cannot change it.
func TestOpenCounters(t *testing.T) {
	bpffs := mountBPF(t)
	if _, err := OpenCounters(bpffs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where nothing ran the error is %v, want %v", err, fs.ErrNotExist)
	}
	n := newNode(t, open(t, bpffs))
	r, err := OpenCounters(bpffs)
	must(t, err)
	defer r.Close()
	frame := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)})
	ours, err := n.o.Counters()
	must(t, err)
	theirs, err := r.Counters()
	must(t, err)
	if d := cmp.Diff(ours, theirs); d != "" || theirs.Punted.Packets != 1 {
		t.Errorf("the readers differ\n%s", d)
	}
	if err := r.m.Put(uint32(0), make([]Count, ebpf.MustPossibleCPU())); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("writing through the reader gives %v, want %v", err, fs.ErrPermission)
	}
}

// TestUnreadablePins: a pin that this process may not open costs the start, not the flows.
func TestUnreadablePins(t *testing.T) {
	bpffs := mountBPF(t)
	o := open(t, bpffs)
	n := newNode(t, o)
	n.insert(t, onePair, conntrack.ModeGo)
	must(t, o.Close())
	path := pinsUnder(bpffs).mapPath("flows")
	must(t, os.Chmod(path, 0))
	err := withoutOverride(t, func() error {
		again, err := Open(Config{BPFFS: bpffs, FlowSlots: 1024, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			again.Close()
		}
		return err
	})
	if err == nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names the pin", err)
	}
	must(t, os.Chmod(path, 0o600))
	if found := open(t, bpffs).Opened(); !found.Kept || found.LostFlows > 0 {
		t.Errorf("afterwards: %+v, want the flows", found)
	}
}

// withoutOverride calls do without the right to open what its mode forbids.
func withoutOverride(t *testing.T, do func() error) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			done <- err
			return
		}
		data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
		if err := unix.Capset(&header, &data[0]); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}
