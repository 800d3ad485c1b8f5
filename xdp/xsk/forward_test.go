package xsk

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// forward is the loop of a worker: what one socket receives leaves through the other, the
// same frame, rewritten in place. It returns when stop is set, or on an error.
func forward(from, to *Socket, stop *atomic.Bool) error {
	var batch [64]Frame
	for !stop.Load() {
		from.Refill(from.umem.Frames())
		if _, err := from.Wait(10 * time.Millisecond); err != nil {
			return err
		}
		n := from.Receive(batch[:])
		for i := range batch[:n] {
			from.umem.Bytes(batch[i])[0] = 2 // to a unicast address
		}
		for left := batch[:n]; len(left) > 0; {
			took, err := to.Transmit(left)
			if err != nil {
				return err
			}
			left = left[took:]
			if err := to.Kick(); err != nil {
				return err
			}
			to.Complete()
		}
	}
	return nil
}

// start runs f until the test ends and fails the test with its error.
func start(t *testing.T, f func(stop *atomic.Bool) error) (finish func()) {
	t.Helper()
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() { done <- f(&stop) }()
	ended := false
	finish = func() {
		if ended {
			return
		}
		ended = true
		stop.Store(true)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the worker does not end")
		}
	}
	t.Cleanup(finish)
	return finish
}

// TestForwardAcrossDevices: one Umem serves two sockets; a frame is received by one and
// transmitted by the other, in place, none is lost, and the books balance at every step.
func TestForwardAcrossDevices(t *testing.T) {
	cases := []struct {
		name  string
		apart bool // the two devices of the worker are in different network namespaces
	}{
		{"both devices in one namespace", false},
		{"devices in two namespaces", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			left := newSpace(t)
			right := left
			if c.apart {
				right = newSpace(t)
			}
			veth{nearName: "c0", farName: "n0", near: left, far: left}.up(t)
			veth{nearName: "n1", farName: "c1", near: right, far: right}.up(t)
			arrivals := right.count("c1")

			worker := newUmem(t, UmemConfig{Frames: 4096})
			in := left.open(worker, Config{Device: "n0"})
			out := right.open(worker, Config{Device: "n1"})
			left.redirect("n0", in)
			client := newUmem(t, UmemConfig{Frames: 512})
			source := left.open(client, Config{Device: "c0"})

			in.Refill(2048)
			finish := start(t, func(stop *atomic.Bool) error { return forward(in, out, stop) })
			// Never more under way than the RX ring holds: nothing may be lost.
			const total, window = 50_000, 1024
			batch := make([]Frame, 64)
			deadline := time.Now().Add(30 * time.Second)
			for sent := uint64(0); sent < total; {
				if sent-arrivals.arrived() > window {
					if time.Now().After(deadline) {
						t.Fatalf("%d sent, %d arrived, and no more come", sent, arrivals.arrived())
					}
					continue
				}
				n := makeFrames(client, batch, sent)
				if _, err := source.Transmit(batch[:n]); err != nil {
					t.Fatal(err)
				}
				if err := source.Kick(); err != nil {
					t.Fatal(err)
				}
				sent += uint64(n)
			}
			sent := source.stats.Transmitted
			await(t, 5*time.Second, "all frames arrived", func() bool { return arrivals.arrived() == sent })
			finish()
			out.Complete()
			conserved(t, worker, client)
			if got := in.stats.Received; got != sent {
				t.Errorf("received %d of %d", got, sent)
			}
		})
	}
}

// TestQueues: a device with 1, 2 or 4 queues has a socket on each, all on one Umem; what is
// sent on a queue is received on that queue and no other.
func TestQueues(t *testing.T) {
	for _, queues := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d queues", queues), func(t *testing.T) {
			sp := newSpace(t)
			veth{nearName: "a", farName: "b", near: sp, far: sp, queues: queues}.up(t)
			receivers, senders := newUmem(t, UmemConfig{Frames: 1024}), newUmem(t, UmemConfig{Frames: 1024})
			var in, out []*Socket
			for q := range queues {
				in = append(in, sp.open(receivers, Config{Device: "b", Queue: q, Fill: 128, Receive: 128}))
				out = append(out, sp.open(senders, Config{Device: "a", Queue: q, Transmit: 128}))
				in[q].Refill(128)
				if got := in[q].Mode(); got != ModeCopy {
					t.Errorf("mode of queue %d is %v: a veth has copy only", q, got)
				}
			}
			sp.redirect("b", in...)
			poller := NewPoller(in...)
			for q, s := range out {
				const frames = 20
				for i := range frames {
					send(t, s, uint64(q*frames+i))
				}
				got := map[uint64]bool{}
				var batch [64]Frame
				await(t, 5*time.Second, fmt.Sprintf("queue %d received all", q), func() bool {
					if _, err := poller.Wait(10 * time.Millisecond); err != nil {
						t.Fatal(err)
					}
					n := in[q].Receive(batch[:])
					for i := range batch[:n] {
						got[number(receivers.Bytes(batch[i]))] = true
					}
					if _, err := receivers.Release(batch[:n]); err != nil {
						t.Fatal(err)
					}
					return len(got) == frames
				})
				for i := range frames {
					if !got[uint64(q*frames+i)] {
						t.Errorf("frame %d of queue %d did not arrive", i, q)
					}
				}
			}
			for q, s := range in {
				if s.stats.Received != 20 {
					t.Errorf("queue %d received %d frames: want the 20 that were sent on it", q, s.stats.Received)
				}
			}
			conserved(t, receivers, senders)
			if _, err := sp.tryOpen(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "a", Queue: queues}); !errors.Is(err, ErrQueue) {
				t.Errorf("open of a queue that is not there: %v, want ErrQueue", err)
			}
		})
	}
}
