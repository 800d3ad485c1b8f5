package xsk

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
)

// space is a network namespace without a name, which lives as long as its test: a thread
// that never leaves it.
type space struct {
	t    *testing.T
	work chan func()
	ns   netns.NsHandle
	link *netlink.Handle
}

func newSpace(t *testing.T) *space {
	t.Helper()
	testenv.Privileged(t)
	s := &space{t: t, work: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and the namespace with it.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ready <- err
			return
		}
		ns, err := netns.Get()
		s.ns = ns
		ready <- err
		for f := range s.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	var err error
	if s.link, err = netlink.NewHandleAt(s.ns); err != nil {
		t.Fatalf("netlink in the namespace: %v", err)
	}
	t.Cleanup(func() {
		s.link.Close()
		s.ns.Close()
		close(s.work)
	})
	return s
}

// do runs f on the namespace's thread.
func (s *space) do(f func() error) error {
	done := make(chan error)
	s.work <- func() { done <- f() }
	return <-done
}

// must is do for steps that cannot fail in a sound test.
func (s *space) must(what string, f func() error) {
	s.t.Helper()
	if err := s.do(f); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// veth describes a pair of devices; both ends may be in one namespace.
type veth struct {
	nearName, farName string
	near, far         *space
	queues, mtu       int
	sendQueues        int // 0: as many as queues
}

// up makes the pair and sets both ends up, without any address: nobody else speaks on it.
func (v veth) up(t *testing.T) {
	t.Helper()
	if v.queues == 0 {
		v.queues = 1
	}
	if v.mtu == 0 {
		v.mtu = 1500
	}
	if v.sendQueues == 0 {
		v.sendQueues = v.queues
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU = v.nearName, v.mtu
	attributes.NumTxQueues, attributes.NumRxQueues = v.sendQueues, v.queues
	link := &netlink.Veth{
		LinkAttrs: attributes, PeerName: v.farName, PeerMTU: uint32(v.mtu), PeerNamespace: netlink.NsFd(v.far.ns),
		PeerNumTxQueues: uint32(v.queues), PeerNumRxQueues: uint32(v.queues),
	}
	if err := v.near.link.LinkAdd(link); err != nil {
		t.Fatalf("add %s and %s: %v", v.nearName, v.farName, err)
	}
	v.near.raise(v.nearName)
	v.far.raise(v.farName)
}

func (s *space) device(name string) netlink.Link {
	s.t.Helper()
	l, err := s.link.LinkByName(name)
	if err != nil {
		s.t.Fatalf("find %s: %v", name, err)
	}
	return l
}

func (s *space) raise(name string) {
	s.t.Helper()
	s.must("keep IPv6 silent on "+name, func() error {
		path := fmt.Sprintf("/proc/sys/net/ipv6/conf/%s/disable_ipv6", name)
		if err := os.WriteFile(path, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	})
	if err := s.link.LinkSetUp(s.device(name)); err != nil {
		s.t.Fatalf("set %s up: %v", name, err)
	}
}

func (s *space) lower(name string) {
	s.t.Helper()
	if err := s.link.LinkSetDown(s.device(name)); err != nil {
		s.t.Fatalf("set %s down: %v", name, err)
	}
}

func (s *space) remove(name string) {
	s.t.Helper()
	if err := s.link.LinkDel(s.device(name)); err != nil {
		s.t.Fatalf("remove %s: %v", name, err)
	}
}

// open opens a socket in the namespace and closes it with the test.
func (s *space) open(u *Umem, c Config) *Socket {
	s.t.Helper()
	sock, err := s.tryOpen(u, c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := sock.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return sock
}

func (s *space) tryOpen(u *Umem, c Config) (sock *Socket, err error) {
	err = s.do(func() error {
		sock, err = Open(u, c)
		return err
	})
	return sock, err
}

func newUmem(t testing.TB, c UmemConfig) *Umem {
	t.Helper()
	u, err := NewUmem(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// conserved fails the test when a frame was lost or counted twice.
func conserved(t testing.TB, us ...*Umem) {
	t.Helper()
	for _, u := range us {
		if err := u.Conserved(); err != nil {
			t.Fatal(err)
		}
	}
}

// Test frames: an Ethernet header of the local experimental type (IEEE 802 EtherType
// 88-B5), then a number, padded to the shortest Ethernet frame.
const (
	testType   = 0x88b5
	testLength = 60
)

func write(b []byte, number uint64) {
	copy(b, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1})
	binary.BigEndian.PutUint16(b[12:], testType)
	binary.BigEndian.PutUint64(b[14:], number)
}

func number(b []byte) uint64 { return binary.BigEndian.Uint64(b[14:]) }

// makeFrames takes up to n free frames and writes them, numbered from first on.
func makeFrames(u *Umem, batch []Frame, first uint64) int {
	n := u.Allocate(batch)
	for i := range batch[:n] {
		batch[i].Len = testLength
		write(u.Bytes(batch[i]), first+uint64(i))
	}
	return n
}

// send transmits one frame of the number and kicks.
func send(t testing.TB, s *Socket, number uint64) {
	t.Helper()
	var one [1]Frame
	if makeFrames(s.umem, one[:], number) != 1 {
		t.Fatal("no free frame")
	}
	if n, err := s.Transmit(one[:]); n != 1 || err != nil {
		t.Fatalf("transmit one frame: %d taken, %v", n, err)
	}
	if err := s.Kick(); err != nil {
		t.Fatal(err)
	}
}

// await polls for a condition; the description ends the sentence "never saw that ...".
func await(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("after %v never saw that %s", limit, what)
		}
		runtime.Gosched()
	}
}
