package xsk

import (
	"testing"
	"time"
)

// TestPathDoesNotAllocate: a frame's whole way, with the kernel in it and an idle wait,
// allocates nothing.
func TestPathDoesNotAllocate(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	u := newUmem(t, UmemConfig{Frames: 1024})
	out := sp.open(u, Config{Device: "a", Fill: 64})
	in := sp.open(u, Config{Device: "b", Fill: 512})
	sp.redirect("b", in)
	poller := NewPoller(in, out)
	batch := make([]Frame, 64)
	received := 0
	allocs := testing.AllocsPerRun(200, func() {
		in.Refill(512)
		n := makeFrames(u, batch, 0)
		if _, err := out.Transmit(batch[:n]); err != nil {
			t.Fatal(err)
		}
		if err := out.Kick(); err != nil {
			t.Fatal(err)
		}
		out.Complete()
		if _, err := poller.Wait(10 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		for {
			n := in.Receive(batch)
			if n == 0 {
				break
			}
			received += n
			if _, err := u.Release(batch[:n]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := in.Wait(time.Microsecond); err != nil {
			t.Fatal(err)
		}
		if c := u.Census(); c.Sum() != c.Total {
			t.Fatalf("census: %+v", c)
		}
		if _, err := in.Stats(); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a round: want 0", allocs)
	}
	if received < 200*64/2 {
		t.Errorf("only %d frames went round: the path was not measured", received)
	}
	conserved(t, u)
}
