package dataplane

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/xdp"
)

// TestWithoutABPFFileSystem: the command that mends it is said, as lace check says it.
func TestWithoutABPFFileSystem(t *testing.T) {
	ordinary := t.TempDir()
	absent := ordinary + "/absent"
	for path, says := range map[string]string{
		ordinary: "bpf file system: none at " + ordinary + " → mount -t bpf bpf " + ordinary,
		absent:   "bpf file system: none at " + absent + " → mkdir -p " + absent + " && mount -t bpf bpf " + absent,
	} {
		err := Run(t.Context(), Config{StateDir: t.TempDir(), BPFFS: path, Log: slog.New(slog.DiscardHandler)})
		if err == nil || err.Error() != says {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

// TestWithoutRights: an ordinary user is told what is missing and what to do.
func TestWithoutRights(t *testing.T) {
	testenv.Privileged(t)
	dir := t.TempDir()
	c := exec.Command("/proc/self/exe")
	c.Env = []string{asFastpath + `={"StateDir":"` + dir + `"}`}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ends with %v, want exit code 1", err)
	}
	for _, word := range []string{"state directory: ", dir, "user 65534 and lacks CAP_NET_ADMIN", "CAP_SYS_ADMIN", "run it as root"} {
		if !strings.Contains(string(out), word) {
			t.Errorf("it says %q, want %q in it", out, word)
		}
	}
}

// TestEachStepOfTheStartFailsWithItsReason: whatever cannot be done ends the start with
// an error that names it, and leaves nothing that would fail the next start.
func TestEachStepOfTheStartFailsWithItsReason(t *testing.T) {
	testenv.Privileged(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	cases := []struct {
		step, says string
		spoil      func(f *fastpath) (mend func())
	}{
		{"the lock", "fastpath.lock", func(f *fastpath) func() { return f.inTheWay(lockFile) }},
		{"the BPF file system", "mount -t bpf bpf", func(f *fastpath) func() {
			was := f.config.BPFFS
			f.config.BPFFS = f.config.StateDir
			return func() { f.config.BPFFS = was }
		}},
		{"the kernel programs", "kernel programs: ", func(f *fastpath) func() {
			pins := f.config.BPFFS + "/lace"
			must(os.Symlink("/absent/lace", pins))
			return func() { must(os.Remove(pins)) }
		}},
		{"the trunk", "trunk: ", func(f *fastpath) func() {
			l := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "lace0"}}
			must(netlink.LinkAdd(l))
			return func() { must(netlink.LinkDel(l)) }
		}},
		{"the counters", "counter file ", func(f *fastpath) func() { return f.inTheWay(counterFile) }},
		{"the sockets", "sockets: ", func(f *fastpath) func() {
			f.start()
			f.stop()
			return f.occupy()
		}},
	}
	for _, c := range cases {
		t.Run(c.step, func(t *testing.T) {
			f := newFastpath(t, 1)
			mend := c.spoil(f)
			config := f.config
			config.Log = slog.New(slog.DiscardHandler)
			err := Run(t.Context(), config)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
			mend()
			f.start()
			f.stop()
		})
	}
}

// inTheWay puts a directory where a file is to be written.
func (f *fastpath) inTheWay(file string) (mend func()) {
	f.t.Helper()
	path := f.config.path(file)
	if err := os.MkdirAll(path+"/full", 0o700); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(path); err != nil {
			f.t.Error(err)
		}
	}
}

// occupy takes the queue of the trunk that an earlier fast path left.
func (f *fastpath) occupy() (mend func()) {
	f.t.Helper()
	trunk, err := xdp.OpenTrunk(xdp.TrunkConfig{
		StateDir: f.config.StateDir, Queues: 1, MTU: DefaultTrunkMTU, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	var p *port.XSK
	if err := trunk.Do(func() (err error) { p, err = port.OpenXSK(lace1, 0); return err }); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		if err := p.Close(); err != nil {
			f.t.Error(err)
		}
		if err := trunk.Close(); err != nil {
			f.t.Error(err)
		}
	}
}

// TestWhatChangedWhileItWasDownCostsNoPacket: tables that are newer than what the kernel
// knows void flows of the lane when there is a socket for them, and not before.
func TestWhatChangedWhileItWasDownCostsNoPacket(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	n.publishLane(f, 1)
	f.start()
	f.uses(1)
	var flows []net.Conn
	for _, vip := range vips {
		c, err := n.dial(n.client, "udp", netip.AddrPortFrom(vip, toWeb))
		n.must(err)
		defer c.Close()
		for range 20 { // over to the lane
			n.must(talk(c, 100))
		}
		flows = append(flows, c)
	}
	f.kill()
	n.publishLane(f, 2)
	before := f.kernel()

	stop, sent := make(chan struct{}), make(chan error)
	go func() { sent <- pour(flows, stop) }()
	f.start()
	f.uses(2)
	close(stop)
	n.must(<-sent)
	for _, c := range flows {
		n.must(drain(c))
		n.must(talk(c, 100))
	}
	after := f.kernel()
	if lost := after.Reasons[reason.NoWorker].Packets - before.Reasons[reason.NoWorker].Packets; lost != 0 {
		t.Errorf("%d packets of the lane found no socket, want none", lost)
		for cause := range xdp.Cause(xdp.Causes) {
			t.Logf("punted for %s: %d before, %d now", cause, before.Punts[cause].Packets, after.Punts[cause].Packets)
		}
	}
	f.stop()
}

// publishLane publishes tables with the lane on, in which every backend has a generation
// of its own.
func (n *network) publishLane(f *fastpath, generation uint16) {
	n.t.Helper()
	c := n.contents(uint64(generation))
	c.Settings.Lane = 1
	for i := range c.Backends {
		c.Backends[i].Generation = generation
	}
	for i := range c.Frontends {
		c.Frontends[i].Generation = generation
	}
	f.publish(c)
}

// kernel reads the counters of the kernel side.
func (f *fastpath) kernel() xdp.Counters {
	f.t.Helper()
	r, err := xdp.OpenCounters(f.config.BPFFS)
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Counters()
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// pour sends datagrams at a steady pace until it is told to stop.
func pour(flows []net.Conn, stop <-chan struct{}) error {
	for _, c := range flows {
		if err := c.SetDeadline(time.Time{}); err != nil { // not talk's
			return err
		}
	}
	pace := time.NewTicker(500 * time.Microsecond)
	defer pace.Stop()
	b := make([]byte, 100)
	for {
		select {
		case <-stop:
			return nil
		case <-pace.C:
		}
		for _, c := range flows {
			if _, err := c.Write(b); err != nil {
				return err
			}
		}
	}
}

// drain reads what is there until nothing comes for a moment.
func drain(c net.Conn) error {
	b := make([]byte, 1<<16)
	for {
		if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			return err
		}
		if _, err := c.Read(b); os.IsTimeout(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestADamagedFlowTableCostsItsFlowsAndNotTheStart: whatever lies in the pinned maps, the
// fast path serves, and says how many flows went.
func TestADamagedFlowTableCostsItsFlowsAndNotTheStart(t *testing.T) {
	for _, c := range []struct {
		spoilt       string // file of the pinned map
		entry        uint32
		kept, warned bool
	}{
		{"flows", 0, false, true},     // the header
		{"flow_tags", 0, true, false}, // follows from the slots
	} {
		t.Run(c.spoilt, func(t *testing.T) {
			n, f := newNetwork(t), newFastpath(t, 1)
			n.serveEcho()
			f.publish(n.contents(1))
			f.start()
			f.uses(1)
			for _, vip := range vips {
				n.converse(n.client, "udp", netip.AddrPortFrom(vip, toWeb))
			}
			f.stop()
			f.spoil(c.spoilt, c.entry)
			f.start()
			f.uses(1)
			if said := strings.Contains(f.log.String(), "flow table is damaged"); said != c.warned {
				t.Errorf("a damaged flow table is logged: %t, want %t\n%s", said, c.warned, f.log)
			}
			s := f.readStatus()
			if lost := s.FlowsLost >= 2; lost == c.kept || s.FlowsKept != c.kept {
				t.Errorf("flows kept: %t, lost: %d", s.FlowsKept, s.FlowsLost)
			}
			for _, vip := range vips {
				n.converse(n.client, "tcp", netip.AddrPortFrom(vip, toWeb))
			}
			f.stop()
		})
	}
}

// spoil fills an entry of a pinned array with random bytes.
func (f *fastpath) spoil(name string, entry uint32) {
	f.t.Helper()
	m, err := ebpf.LoadPinnedMap(f.config.BPFFS+"/lace/maps/"+name, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer m.Close()
	b := make([]byte, m.ValueSize())
	if _, err := rand.Read(b); err != nil {
		f.t.Fatal(err)
	}
	if err := m.Put(entry, b); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fastpath) readStatus() (s Status) {
	f.t.Helper()
	b, err := os.ReadFile(f.config.path(statusFile))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// TestTwoFastPathsOfOneNode: another state directory does not make another node.
func TestTwoFastPathsOfOneNode(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	second := f.config
	second.StateDir, second.Log = t.TempDir(), slog.New(slog.DiscardHandler)
	err := Run(t.Context(), second)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "network namespace") {
		t.Errorf("another state directory in the same network namespace: %v, want ErrInUse that says so", err)
	}
	if _, err := Cleanup(second); !errors.Is(err, ErrInUse) {
		t.Errorf("Cleanup with another state directory gives %v, want ErrInUse", err)
	}
	n.in(n.client, func() { err = Run(t.Context(), second) })
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), f.config.BPFFS) {
		t.Errorf("the same BPF file system in another network namespace: %v, want ErrInUse that names it", err)
	}
	n.converse(n.client, "tcp", netip.AddrPortFrom(vips[0], toWeb))
	f.stop()
}

// TestALockIsWaitedForWhileItsHolderEnds: a killed process goes some time after its kill.
func TestALockIsWaitedForWhileItsHolderEnds(t *testing.T) {
	path := t.TempDir() + "/lock"
	open := func() *os.File {
		t.Helper()
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := own(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(exitPatience/4, func() { first.Close() })
	if err := own(t.Context(), second); err != nil {
		t.Errorf("%v, want the lock as soon as its holder has gone", err)
	}
	start := time.Now()
	if err := own(t.Context(), open()); !errors.Is(err, ErrInUse) || time.Since(start) < exitPatience {
		t.Errorf("after %v: %v, want ErrInUse after %v", time.Since(start), err, exitPatience)
	}
}

// TestCleanupSaysWhatItRemoved, each thing that was there, and nothing when nothing was.
func TestCleanupSaysWhatItRemoved(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	f.stop()
	removed, err := Cleanup(f.config)
	n.must(err)
	if said := strings.Join(removed, "\n"); len(removed) != 3 {
		t.Errorf("removed %q, want pins, trunk and files", said)
	}
	for i, word := range []string{"links of BPF programs, and ", "lace0", "counters, fastpath.json, fastpath.lock"} {
		if i < len(removed) && !strings.Contains(removed[i], word) {
			t.Errorf("line %d says %q, want %q in it", i+1, removed[i], word)
		}
	}
	if _, err := netlink.LinkByName("lace0"); err == nil {
		t.Error("lace0 is still there")
	}
	if removed, err := Cleanup(f.config); err != nil || len(removed) != 0 {
		t.Errorf("a second time: %q, %v, want nothing", removed, err)
	}
}

// TestStartWithoutItsStatus: a state directory that takes no file any more stops nobody. The
// status comes when there is room.
func TestStartWithoutItsStatus(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	n.publishLane(f, 1)
	mend := f.inTheWay(statusFile)
	f.start()
	f.says("serving without")
	c, err := n.dial(n.client, "udp", netip.AddrPortFrom(vips[0], toWeb))
	n.must(err)
	defer c.Close()
	n.must(talk(c, 100))
	mend()
	f.eventually("the status is there", func() bool { _, err := os.Stat(f.config.path(statusFile)); return err == nil })
	f.stop()
}
