package xsk

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOpenRefusals: what cannot be opened is refused with an error that says what and why.
func TestOpenRefusals(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	veth{nearName: "c", farName: "d", near: sp, far: sp}.up(t)
	sp.lower("c")
	taken := sp.open(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "b"})
	cases := []struct {
		name string
		u    *Umem // nil: one of its own
		c    Config
		is   error
		says string
	}{
		{"no such device", nil, Config{Device: "nosuch"}, unix.ENODEV, "nosuch"},
		{"no name", nil, Config{}, nil, "no device named"},
		{"a name that is too long", nil, Config{Device: "a-name-that-is-too-long"}, unix.EINVAL, "a-name-that-is-too-long"},
		{"no such queue", nil, Config{Device: "a", Queue: 5}, ErrQueue, "a queue 5"},
		{"a negative queue", nil, Config{Device: "a", Queue: -1}, ErrQueue, "a queue -1"},
		{"zero-copy on a veth", nil, Config{Device: "a", Mode: ModeZeroCopy}, ErrMode, "a queue 0"},
		{"an unknown mode", nil, Config{Device: "a", Mode: 9}, nil, "Mode(9)"},
		{"a ring that is no power of two", nil, Config{Device: "a", Receive: 100}, nil, "100 entries"},
		{"a negative ring", nil, Config{Device: "a", Fill: -8}, nil, "-8 entries"},
		{"a ring beyond all need", nil, Config{Device: "a", Transmit: 1 << 24}, nil, "16777216 entries"},
		{"a queue that another socket holds", nil, Config{Device: "b", Patience: 10 * time.Millisecond}, ErrBusy, "b queue 0"},
		{"a second socket of the same memory on one queue", taken.Umem(), Config{Device: "b"}, ErrQueue, "b queue 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := c.u
			if u == nil {
				u = newUmem(t, UmemConfig{Frames: 64})
			}
			s, err := sp.tryOpen(u, c.c)
			if err == nil {
				t.Fatalf("opened %s queue %d", s.Device(), s.Queue())
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v: want %v", err, c.is)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v: want it to say %q", err, c.says)
			}
			t.Log(err)
			conserved(t, u)
		})
	}
}

// TestReopen: the queue of a closed socket is opened again and again, by the same memory
// and by another, and no frame is lost on the way although frames were in every ring.
func TestReopen(t *testing.T) {
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("same memory %t", same), func(t *testing.T) {
			sp := newSpace(t)
			veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
			arrivals := sp.count("b")
			u := newUmem(t, UmemConfig{Frames: 256})
			for i := range 15 {
				if !same {
					u = newUmem(t, UmemConfig{Frames: 256})
				}
				s, err := sp.tryOpen(u, Config{Device: "a", Fill: 64})
				if err != nil {
					t.Fatalf("round %d: %v", i, err)
				}
				s.Refill(64)
				send(t, s, uint64(i))
				var left [3]Frame // transmitted, never kicked
				makeFrames(u, left[:], 0)
				if _, err := s.Transmit(left[:]); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				conserved(t, u)
				if got := u.Census(); got.Free != got.Total {
					t.Fatalf("round %d: after the close not all frames are back: %+v", i, got)
				}
			}
			if got := arrivals.arrived(); got != 15 {
				t.Errorf("%d frames arrived: want the 15 that were kicked", got)
			}
		})
	}
}

// TestQueueIsReleasedLate: the queue of a predecessor that closes only now is waited for.
func TestQueueIsReleasedLate(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	before := sp.open(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "a"})
	closed := make(chan error)
	go func() {
		time.Sleep(50 * time.Millisecond) // the time that the successor has to wait
		closed <- before.Close()
	}()
	s := sp.open(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "a", Patience: 10 * time.Second})
	if err := <-closed; err != nil {
		t.Error(err)
	}
	send(t, s, 1)
}

// TestMemoryOutlivesSockets: sockets of one memory come and go in any order.
func TestMemoryOutlivesSockets(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp, queues: 3}.up(t)
	u := newUmem(t, UmemConfig{Frames: 64})
	open := func(q int) *Socket { return sp.open(u, Config{Device: "a", Queue: q, Fill: 16}) }
	end := func(s *Socket) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		conserved(t, u)
	}
	first, second := open(0), open(1)
	first.Refill(16)
	second.Refill(16)
	end(first) // the one that registered the memory
	third := open(2)
	third.Refill(16)
	send(t, third, 1)
	end(second)
	end(third) // now the kernel has forgotten the memory
	again := open(0)
	send(t, again, 2)
	again.Complete()
	conserved(t, u)
	if u.Free() != u.Frames() {
		t.Errorf("%d of %d frames are free", u.Free(), u.Frames())
	}
}

// TestClosedSocket: every method of a closed socket moves nothing, and those that can fail
// say ErrClosed.
func TestClosedSocket(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	u := newUmem(t, UmemConfig{Frames: 64})
	s := sp.open(u, Config{Device: "a"})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]Frame, 4)
	makeFrames(u, batch, 0)
	if n, err := s.Transmit(batch); n != 0 || err != nil {
		t.Errorf("transmit: %d taken, %v", n, err)
	}
	if n := s.Refill(4) + s.Receive(batch) + s.Complete() + s.Pending(); n != 0 {
		t.Errorf("%d frames moved", n)
	}
	_, statsErr := s.Stats()
	_, waitErr := s.Wait(time.Millisecond)
	for verb, err := range map[string]error{"kick": s.Kick(), "stats": statsErr, "wait": waitErr} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", verb, err)
		}
	}
	if s.FD() != -1 {
		t.Errorf("file descriptor %d", s.FD())
	}
	conserved(t, u)
}

// TestModeInForce: asked to choose, the kernel gives a veth copy mode, and we say so.
func TestModeInForce(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	s := sp.open(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "a", Mode: ModeAuto})
	if got := s.Mode().String(); got != "copy" {
		t.Errorf("mode in force: %s", got)
	}
	send(t, s, 1)
}

// TestMoreTransmitThanCompletion: a completion ring smaller than the TX ring holds the
// sender up, and does not stop it.
func TestMoreTransmitThanCompletion(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	arrivals := sp.count("b")
	u := newUmem(t, UmemConfig{Frames: 512})
	s := sp.open(u, Config{Device: "a", Transmit: 512, Completion: 2})
	batch := make([]Frame, 500)
	makeFrames(u, batch, 0)
	if n, err := s.Transmit(batch); n != 500 || err != nil {
		t.Fatalf("transmit: %d taken, %v", n, err)
	}
	if err := s.Kick(); err != nil {
		t.Fatal(err)
	}
	await(t, time.Second, "all frames arrived", func() bool { return arrivals.arrived() == 500 })
	s.Complete()
	conserved(t, u)
	if s.stats.Again == 0 {
		t.Error("the kernel never pushed back: the test did not test it")
	}
}

// TestSendBufferHoldsTheRing: a full TX ring of the longest frames can be in flight at once.
func TestSendBufferHoldsTheRing(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	s := sp.open(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "a", Transmit: 1024})
	got, err := unix.GetsockoptInt(s.FD(), unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		t.Fatal(err)
	}
	if got < 1024*2048 {
		t.Errorf("the send buffer has %d bytes: want at least the ring's %d", got, 1024*2048)
	}
}

// TestQueueWithoutTransmitSide: a device with more receive than transmit queues takes the
// call to send and does nothing. This is an error, not an endless loop and not silence.
func TestQueueWithoutTransmitSide(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp, queues: 2, sendQueues: 1}.up(t)
	u := newUmem(t, UmemConfig{Frames: 64})
	s := sp.open(u, Config{Device: "a", Queue: 1})
	var one [1]Frame
	makeFrames(u, one[:], 0)
	if _, err := s.Transmit(one[:]); err != nil {
		t.Fatal(err)
	}
	if err := s.Kick(); !errors.Is(err, ErrQueue) || !strings.Contains(err.Error(), "a queue 1") {
		t.Errorf("kick: %v, want ErrQueue", err)
	}
	conserved(t, u)
}

// TestMemoryAboveLockLimit: frame memory larger than RLIMIT_MEMLOCK works with
// CAP_IPC_LOCK, and without it the error says what is missing.
func TestMemoryAboveLockLimit(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
			t.Errorf("restore RLIMIT_MEMLOCK: %v", err)
		}
	})
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 1 << 20, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	u := newUmem(t, UmemConfig{Frames: 2048}) // 4 MiB
	s := sp.open(u, Config{Device: "a"})
	send(t, s, 1)

	other := newUmem(t, UmemConfig{Frames: 2048})
	sp.must("give CAP_IPC_LOCK up on this thread", func() error { return lockCapability(false) })
	_, err := sp.tryOpen(other, Config{Device: "b"})
	sp.must("take it back", func() error { return lockCapability(true) })
	if !errors.Is(err, unix.ENOBUFS) || !strings.Contains(err.Error(), "CAP_IPC_LOCK") || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("open without the capability: %v", err)
	}
	conserved(t, u, other)
}

// lockCapability sets or clears CAP_IPC_LOCK in the effective set of the calling thread.
func lockCapability(on bool) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	sets[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	if on {
		sets[0].Effective |= 1 << unix.CAP_IPC_LOCK
	}
	return unix.Capset(&header, &sets[0])
}

// TestNothingLeaks: opening, failing to open and closing leave no file descriptor and no
// mapping behind.
func TestNothingLeaks(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	taken := sp.open(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "b"})
	round := func() {
		u, err := NewUmem(UmemConfig{Frames: 64})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sp.tryOpen(u, Config{Device: "a"}); err != nil {
			t.Fatal(err)
		}
		if _, err := sp.tryOpen(u, Config{Device: "b", Patience: time.Millisecond}); err == nil {
			t.Fatalf("%s was opened twice", taken.Device())
		}
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
	}
	round()
	descriptors, mappings := kernelObjects(t)
	for range 5 {
		round()
	}
	if d, m := kernelObjects(t); d != descriptors || m != mappings {
		t.Errorf("AF_XDP descriptors and ring mappings went from %d and %d to %d and %d", descriptors, mappings, d, m)
	}
}

// kernelObjects counts this process's sockets and its mappings of sockets (a ring shows as a
// mapping of the socket).
func kernelObjects(t *testing.T) (sockets, mappings int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			sockets++
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return sockets, strings.Count(string(maps), "socket:[")
}
