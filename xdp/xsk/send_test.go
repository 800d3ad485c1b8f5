package xsk

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// long makes the tests with a clock in them run for their full time.
func long() bool { return os.Getenv("LACE_LONG_TESTS") == "1" }

// stall is the gap between two frames from which on a sender counts as stalled.
const stall = 100 * time.Millisecond

// sendAll sends total numbered frames as fast as the ring takes them and returns when all
// have left. On the way it checks what must always hold: as long as frames are missing, the
// ring moves. It returns the longest time for which its thread got no processor between two
// batches.
func sendAll(t *testing.T, s *Socket, total uint64) (longest time.Duration) {
	t.Helper()
	batch := make([]Frame, 64)
	var sent uint64
	moved, queued := time.Now(), waited()
	for sent < total || s.Pending() > 0 {
		n := makeFrames(s.umem, batch[:min(uint64(len(batch)), total-sent)], sent)
		took, err := s.Transmit(batch[:n])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.umem.Release(batch[took:n]); err != nil {
			t.Fatal(err)
		}
		sent += uint64(took)
		if err := s.Kick(); err != nil {
			t.Fatal(err)
		}
		if s.Complete(); took > 0 || s.Pending() == 0 {
			moved = time.Now()
		}
		if time.Since(moved) > 5*time.Second {
			t.Fatalf("sender stands still after %d of %d frames, %d pending: %+v", sent, total, s.Pending(), s.stats)
		}
		now := waited()
		longest, queued = max(longest, now-queued), now
	}
	await(t, time.Second, "every frame was completed", func() bool { s.Complete(); return s.sending == 0 })
	return longest
}

// waited is how long the calling thread has stood in the queue for a processor since it
// began: a gap that the machine made and not the sender. 0 where the kernel does not say.
func waited() time.Duration {
	b, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return 0
	}
	var ran, queued int64
	if _, err := fmt.Sscan(string(b), &ran, &queued); err != nil {
		return 0
	}
	return time.Duration(queued)
}

// TestSenderNeverStalls: of a burst, and of frames sent one by one, all arrive and none
// waits long. What the machine took from the sender is allowed for (in a burst the longest
// time without a processor, else the longest time between two sends), and a gap counts when
// it shows in each of three attempts. Set LACE_LONG_TESTS=1 for ten million frames, and for
// ten a second.
func TestSenderNeverStalls(t *testing.T) {
	total, few, every := uint64(1_000_000), uint64(50), 20*time.Millisecond
	if testing.Short() {
		total = 100_000
	}
	if long() {
		total, few, every = 10_000_000, 100, 100*time.Millisecond
	}
	burst := func(t *testing.T, s *Socket) (uint64, time.Duration) {
		return total, sendAll(t, s, total)
	}
	slow := func(t *testing.T, s *Socket) (uint64, time.Duration) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		var pause time.Duration
		last := time.Now()
		for i := range few {
			<-tick.C
			pause, last = max(pause, time.Since(last)), time.Now()
			send(t, s, i)
		}
		return few, pause
	}
	t.Run("a burst at full speed", func(t *testing.T) { neverStalls(t, burst) })
	t.Run("single frames far apart", func(t *testing.T) { neverStalls(t, slow) })
}

// neverStalls runs send, which returns how many frames it sent and which gap between them
// was not the rings' doing, and compares with what arrived.
func neverStalls(t *testing.T, send func(*testing.T, *Socket) (uint64, time.Duration)) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	arrivals := sp.count("b")
	u := newUmem(t, UmemConfig{Frames: 4096})
	s := sp.open(u, Config{Device: "a"})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var gap, allowed time.Duration
	for range 3 {
		arrivals.reset()
		before, began := s.stats.DeviceDrops, time.Now()
		sent, excused := send(t, s)
		took := time.Since(began)
		dropped := s.stats.DeviceDrops - before
		await(t, time.Second, "all frames arrived", func() bool { return arrivals.arrived()+dropped >= sent })
		var count uint64
		count, gap = arrivals.read()
		allowed = excused + stall
		t.Logf("%d sent, %d arrived, %d dropped by the device and counted, longest gap %v of %v allowed, %v per frame",
			sent, count, dropped, gap, allowed, took/time.Duration(sent))
		if count != sent || dropped != 0 {
			t.Errorf("%d of %d frames arrived, the device dropped %d: want all", count, sent, dropped)
		}
		if gap <= allowed {
			break
		}
	}
	if gap > allowed {
		t.Errorf("three times in a row a gap between frames, now of %v: want at most %v", gap, allowed)
	}
	conserved(t, u)
}

// TestFramesLeaveAtOnce: frames and then nothing. They leave with Kick, and with Wait when
// Kick was forgotten; all of them, although the kernel takes 32 in one call.
func TestFramesLeaveAtOnce(t *testing.T) {
	kick := func(s *Socket) error { return s.Kick() }
	wait := func(s *Socket) error { _, err := s.Wait(time.Millisecond); return err }
	cases := []struct {
		name   string
		frames int
		leave  func(s *Socket) error
	}{
		{"one by Kick", 1, kick},
		{"one by Wait without a Kick", 1, wait},
		{"a hundred by one Kick", 100, kick},
		{"a hundred by one Wait without a Kick", 100, wait},
	}
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	arrivals := sp.count("b")
	u := newUmem(t, UmemConfig{Frames: 128})
	s := sp.open(u, Config{Device: "a"})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			arrivals.reset()
			batch := make([]Frame, c.frames)
			makeFrames(u, batch, 0)
			if _, err := s.Transmit(batch); err != nil {
				t.Fatal(err)
			}
			if got := s.Pending(); got != c.frames {
				t.Fatalf("%d frames pending before the kernel was called: want %d", got, c.frames)
			}
			if err := c.leave(s); err != nil {
				t.Fatal(err)
			}
			if got := s.Pending(); got != 0 {
				t.Errorf("%d frames stay behind", got)
			}
			await(t, stall, "all frames arrived", func() bool { return arrivals.arrived() == uint64(c.frames) })
			await(t, stall, "their chunks came back", func() bool { s.Complete(); return u.Free() == u.Frames() })
			conserved(t, u)
		})
	}
}
