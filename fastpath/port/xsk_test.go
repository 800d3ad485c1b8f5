package port

import (
	"bytes"
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
)

var _ Port = (*XSK)(nil)

// wire is a veth pair in a network namespace that ends with the test: near carries the
// port, far a packet socket.
type wire struct {
	t    *testing.T
	port *XSK
	near netlink.Link
	far  int // packet socket
}

// newWire must be called by the test's own goroutine, whose thread stays in the namespace.
func newWire(t *testing.T) *wire {
	t.Helper()
	testenv.Privileged(t)
	runtime.LockOSThread() // for good: the thread ends with the test
	w := &wire{t: t}
	w.must(unix.Unshare(unix.CLONE_NEWNET))
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "near"
	v := netlink.NewVeth(attrs)
	v.PeerName = "far"
	w.must(netlink.LinkAdd(v))
	for _, name := range []string{"near", "far"} {
		l, err := netlink.LinkByName(name)
		w.must(err)
		w.must(netlink.LinkSetIP6AddrGenMode(l, 1)) // no addresses, no chatter
		w.must(netlink.LinkSetUp(l))
		if name == "far" {
			w.listen(l.Attrs().Index)
		} else {
			w.near = l
		}
	}
	p, err := OpenXSK("near", 0)
	w.must(err)
	w.port = p
	t.Cleanup(func() { w.must(p.Close()) })
	w.redirect()
	return w
}

func (w *wire) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) listen(index int) {
	w.t.Helper()
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	w.must(err)
	w.t.Cleanup(func() { unix.Close(fd) })
	w.must(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}))
	w.must(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}))
	w.far = fd
}

// redirect gives every frame that comes in on near to the port.
func (w *wire) redirect() {
	w.t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	w.must(err)
	w.t.Cleanup(func() { m.Close() })
	const drop = 1
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 16, asm.Word), // rx_queue_index
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Imm(asm.R3, drop),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}})
	w.must(err)
	w.t.Cleanup(func() { p.Close() })
	l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: w.near.Attrs().Index, Flags: link.XDPDriverMode})
	w.must(err)
	w.t.Cleanup(func() { l.Close() })
	w.must(m.Put(uint32(0), uint32(w.port.Descriptor())))
}

// numbered is a frame that can be told from others.
func numbered(i int) []byte {
	b := bytes.Repeat([]byte{0x5a}, 100)
	copy(b[12:], fmt.Sprintf("\x88\xb5frame %06d", i)) // a local experimental ether type
	return b
}

func (w *wire) send(frame []byte) {
	w.t.Helper()
	_, err := unix.Write(w.far, frame)
	w.must(err)
}

// arrives waits until the port has so many frames.
func (w *wire) arrives(n int) (got []Frame) {
	w.t.Helper()
	batch := make([]Frame, n)
	for deadline := time.Now().Add(5 * time.Second); len(got) < n; {
		w.must(w.port.Wait(100 * time.Millisecond))
		got = append(got, batch[:w.port.Receive(batch[:n-len(got)])]...)
		if time.Now().After(deadline) {
			w.t.Fatalf("%d of %d frames arrived", len(got), n)
		}
	}
	return got
}

func TestXSKEchoes(t *testing.T) {
	w := newWire(t)
	back := make([]byte, 2048)
	next := 0
	for round := range 100 {
		for range 32 {
			w.send(numbered(next))
			next++
		}
		frames := w.arrives(32)
		w.must(w.port.Conserved(32))
		for i := range frames {
			if want := numbered(32*round + i); !bytes.Equal(frames[i].Bytes, want) {
				t.Fatalf("frame %d is %q, want %q", i, frames[i].Bytes, want)
			}
			// Every second one is answered, longer than it was.
			if i%2 == 0 {
				frames[i].Bytes = append(frames[i].Bytes, "and more"...)
			}
		}
		var out, drop []Frame
		for i, f := range frames {
			if i%2 == 0 {
				out = append(out, f)
			} else {
				drop = append(drop, f)
			}
		}
		if n := w.port.Transmit(out); n != len(out) {
			t.Fatalf("the ring took %d of %d frames", n, len(out))
		}
		w.port.Recycle(drop)
		w.must(w.port.Flush())
		w.must(w.port.Conserved(0))
		for i := range out {
			n, err := unix.Read(w.far, back)
			w.must(err)
			if want := append(numbered(32*round+2*i), "and more"...); !bytes.Equal(back[:n], want) {
				t.Fatalf("came back as %q, want %q", back[:n], want)
			}
		}
	}
	s := w.port.Stats()
	if s.Received != 3200 || s.Transmitted != 1600 || s.RingFull != 0 || s.Dropped != 0 || s.Kicks == 0 {
		t.Errorf("stats %+v, want 3200 received, 1600 transmitted, none lost", s)
	}
}

func TestXSKKeepsWhatADownedDeviceCannotSend(t *testing.T) {
	w := newWire(t)
	w.send(numbered(1))
	f := w.arrives(1)
	w.must(netlink.LinkSetDown(w.near))
	if n := w.port.Transmit(f); n != 1 {
		t.Fatalf("took %d frames", n)
	}
	if err := w.port.Flush(); err != nil {
		t.Fatalf("Flush on a device that is down: %v", err)
	}
	start := time.Now()
	if err := w.port.Wait(20 * time.Millisecond); err != nil {
		t.Fatalf("Wait on a device that is down: %v", err)
	}
	if d := time.Since(start); d < 20*time.Millisecond {
		t.Errorf("waited %v only, which would spin", d)
	}
	w.must(w.port.Conserved(0))
	w.must(netlink.LinkSetUp(w.near))
	w.must(w.port.Flush())
	back := make([]byte, 2048)
	for deadline := time.Now().Add(5 * time.Second); ; {
		n, err := unix.Read(w.far, back)
		if err == nil && bytes.Equal(back[:n], numbered(1)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the frame did not leave when the device came back: %v", err)
		}
		w.must(w.port.Flush())
	}
}

func TestXSKSaysWhenTheDeviceIsGone(t *testing.T) {
	w := newWire(t)
	w.must(netlink.LinkDel(w.near))
	for deadline := time.Now().Add(5 * time.Second); ; {
		if err := w.port.Wait(20 * time.Millisecond); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is said of a device that was removed")
		}
	}
}

func TestXSKNoticesAFrameGivenBackTwice(t *testing.T) {
	w := newWire(t)
	w.send(numbered(1))
	f := w.arrives(1)
	w.port.Recycle(f)
	w.port.Recycle(f)
	if err := w.port.Flush(); err == nil {
		t.Error("no error")
	}
}
