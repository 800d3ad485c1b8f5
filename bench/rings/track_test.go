package rings

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/xdp/xsk"
)

const (
	ringSize  = 2048
	frames    = 4096
	chunkSize = 2048
	etherType = 0x88b5 // local experimental (IEEE 802)
	xdpDrop   = 1      // linux/bpf.h
)

// enter moves the benchmark to a processor and a network namespace of its own. The thread
// stays there: it ends with the benchmark.
func enter(b testing.TB) {
	b.Helper()
	testenv.Privileged(b)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		b.Fatalf("make a network namespace: %v", err)
	}
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		b.Fatal(err)
	}
	for cpu := 0; cpu < 1024; cpu++ {
		if all.IsSet(cpu) {
			one.Zero()
			one.Set(cpu) // the last one: the first has most of the machine's interrupts
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		b.Fatal(err)
	}
}

// track is one veth pair: frames are sent on the near end by a generator, forwarded back
// on the far end by the rings under test, and counted and dropped at the near end.
type track struct {
	b         testing.TB
	far       netlink.Link
	umem      *xsk.Umem
	generator *xsk.Socket
	arrived   *ebpf.Map
	sockets   *ebpf.Map
	batch     []xsk.Frame
}

func newTrack(b testing.TB, name string) *track {
	b.Helper()
	near, far := name+"-near", name+"-far"
	attributes := netlink.NewLinkAttrs()
	attributes.Name = near
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: far}); err != nil {
		b.Fatalf("add %s: %v", near, err)
	}
	t := &track{b: b, batch: make([]xsk.Frame, ringSize)}
	t.far = t.up(far)
	t.count(t.up(near))
	t.redirect()
	var err error
	if t.umem, err = xsk.NewUmem(xsk.UmemConfig{Frames: ringSize, ChunkSize: chunkSize}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.umem.Close() })
	if t.generator, err = xsk.Open(t.umem, xsk.Config{Device: near}); err != nil {
		b.Fatal(err)
	}
	return t
}

func (t *track) up(name string) netlink.Link {
	t.b.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.b.Fatal(err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		t.b.Fatalf("set %s up: %v", name, err)
	}
	return l
}

func newMap(b testing.TB, spec *ebpf.MapSpec) *ebpf.Map {
	b.Helper()
	m, err := ebpf.NewMap(spec)
	if err != nil {
		b.Fatalf("make a map: %v", err)
	}
	b.Cleanup(func() { m.Close() })
	return m
}

// count attaches the near end's program: it counts the frames that come back.
func (t *track) count(near netlink.Link) {
	t.b.Helper()
	t.arrived = newMap(t.b, &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	t.attach(near, append(onlyTestFrames(),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, t.arrived.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
	))
}

// redirect attaches the far end's program: it gives the generator's frames to the socket.
func (t *track) redirect() {
	t.b.Helper()
	t.sockets = newMap(t.b, &ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	t.attach(t.far, append(onlyTestFrames(),
		asm.LoadMem(asm.R2, asm.R6, 16, asm.Word), // rx_queue_index
		asm.LoadMapPtr(asm.R1, t.sockets.FD()),
		asm.Mov.Imm(asm.R3, xdpDrop),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	))
}

// onlyTestFrames jumps to "drop" for what the kernel itself sends on a new device. R6 is
// the context afterwards.
func onlyTestFrames() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, 0, asm.Word), // data
		asm.LoadMem(asm.R3, asm.R6, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, xsk.MinFrame),
		asm.JGT.Reg(asm.R4, asm.R3, "drop"),
		asm.LoadMem(asm.R5, asm.R2, 12, asm.Half),
		asm.HostTo(asm.BE, asm.R5, asm.Half),
		asm.JNE.Imm(asm.R5, etherType, "drop"),
	}
}

// attach attaches code, which ends in a jump to or a fall into "drop".
func (t *track) attach(l netlink.Link, code asm.Instructions) {
	t.b.Helper()
	code = append(code, asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"), asm.Return())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: code, License: "GPL"})
	if err != nil {
		t.b.Fatalf("load a program: %+v", err)
	}
	t.b.Cleanup(func() { p.Close() })
	x, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: l.Attrs().Index, Flags: link.XDPDriverMode})
	if err != nil {
		t.b.Fatalf("attach XDP to %s: %v", l.Attrs().Name, err)
	}
	t.b.Cleanup(func() { x.Close() })
}

// header writes the Ethernet header of a test frame.
func header(f []byte) {
	copy(f, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1})
	binary.BigEndian.PutUint16(f[12:], etherType)
}

// generate sends n frames of a length to the far end.
func (t *track) generate(n, length int) {
	t.b.Helper()
	batch := t.batch[:t.umem.Allocate(t.batch[:n])]
	for i := range batch {
		batch[i].Len = uint32(length)
		header(t.umem.Bytes(batch[i]))
	}
	if taken, err := t.generator.Transmit(batch); taken != n || err != nil {
		t.b.Fatalf("generate %d frames: %d taken, %v", n, taken, err)
	}
	if err := t.generator.Kick(); err != nil {
		t.b.Fatal(err)
	}
	t.generator.Complete()
}

func (t *track) back() uint64 {
	t.b.Helper()
	var n uint64
	if err := t.arrived.Lookup(uint32(0), &n); err != nil {
		t.b.Fatal(err)
	}
	return n
}

// await waits for a condition that the kernel brings about.
func await(what string, done func() bool) error {
	for deadline := time.Now().Add(2 * time.Second); !done(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("after 2 s never saw that %s", what)
		}
	}
	return nil
}
