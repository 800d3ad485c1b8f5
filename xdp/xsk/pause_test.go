package xsk

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestRecoversFromPause: a receiver whose owner stands still under load, as a stopped
// process does, has traffic again at once when it goes on; what was lost meanwhile is
// counted. Set LACE_LONG_TESTS=1 for a pause of ten seconds.
func TestRecoversFromPause(t *testing.T) {
	cases := []struct {
		name          string
		receive, fill int // ring sizes: the smaller one gives in first
		counted       func(k KernelStats) uint64
	}{
		{"the RX ring fills up", 256, 512, func(k KernelStats) uint64 { return k.ReceiveRingFull }},
		{"the fill ring runs dry", 512, 256, func(k KernelStats) uint64 { return k.FillRingEmpty }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { pauseAndRecover(t, c.receive, c.fill, c.counted) })
	}
}

func pauseAndRecover(t *testing.T, receive, fill int, counted func(KernelStats) uint64) {
	pause := time.Second
	if long() {
		pause = 10 * time.Second
	}
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	receivers, senders := newUmem(t, UmemConfig{Frames: 1024}), newUmem(t, UmemConfig{Frames: 1024})
	in := sp.open(receivers, Config{Device: "b", Fill: fill, Receive: receive})
	out := sp.open(senders, Config{Device: "a"})
	sp.redirect("b", in)
	in.Refill(fill)

	// About 100,000 frames a second: a batch of 100 each millisecond. next is the number
	// of the next frame, so that whoever waits can tell new frames from old ones.
	var next atomic.Uint64
	finish := start(t, func(stop *atomic.Bool) error {
		batch := make([]Frame, 100)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for !stop.Load() {
			<-tick.C
			n := makeFrames(senders, batch, next.Load())
			next.Add(uint64(n))
			if _, err := out.Transmit(batch[:n]); err != nil {
				return err
			}
			if err := out.Kick(); err != nil {
				return err
			}
			out.Complete()
		}
		return nil
	})

	var batch [64]Frame
	drain := func() (newest uint64) {
		for {
			n := in.Receive(batch[:])
			if n == 0 {
				in.Refill(fill)
				return newest
			}
			newest = number(receivers.Bytes(batch[n-1]))
			if _, err := receivers.Release(batch[:n]); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(t, 5*time.Second, "traffic flows before the pause", func() bool { return drain() > 0 })

	// The pause itself: the owner does nothing. It lasts by the sender's count of frames
	// too, so that the rings certainly overflow. Three attempts: other work shares the
	// machine.
	var took time.Duration
	for range 3 {
		paused, mark := time.Now(), next.Load()
		await(t, 30*time.Second+2*pause, "load went on during the pause", func() bool {
			time.Sleep(10 * time.Millisecond)
			return time.Since(paused) >= pause && next.Load() > mark+2048
		})
		conserved(t, receivers)

		resumed, after := time.Now(), next.Load()
		await(t, 5*time.Second, "a frame sent after the pause arrived", func() bool {
			if _, err := in.Wait(time.Millisecond); err != nil {
				t.Fatal(err)
			}
			return drain() >= after
		})
		if took = time.Since(resumed); took <= stall {
			break
		}
	}
	st, err := in.Stats()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("paused %v, recovered after %v, %+v", pause, took, st)
	if took > stall {
		t.Errorf("traffic was back %v after the pause: want at most %v", took, stall)
	}
	if counted(st.Kernel) == 0 {
		t.Errorf("frames were lost during the pause, but none is counted: %+v", st.Kernel)
	}
	conserved(t, receivers)

	// Nothing is lost silently: with the sender stopped, what was sent is what was received
	// plus what is counted as lost.
	finish()
	await(t, 5*time.Second, "every frame is accounted for", func() bool {
		drain()
		if st, err = in.Stats(); err != nil {
			t.Fatal(err)
		}
		return st.Received+st.Kernel.Lost() == next.Load()
	})
}
