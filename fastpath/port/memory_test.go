package port

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var _ Port = (*Memory)(nil)

func newMemory(t *testing.T, frames int) *Memory {
	t.Helper()
	m, err := NewMemory(frames, 128)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func collect(m *Memory) (out []string) {
	m.Collect(func(b []byte) { out = append(out, string(b)) })
	return out
}

func conserved(t *testing.T, p Port, held int) {
	t.Helper()
	if err := p.Conserved(held); err != nil {
		t.Error(err)
	}
}

func TestFramesArriveAndLeaveInOrder(t *testing.T) {
	m := newMemory(t, 4)
	for i := range 3 {
		m.Deliver([]byte(fmt.Sprint("frame ", i)))
	}
	batch := make([]Frame, 8)
	n := m.Receive(batch)
	if n != 3 {
		t.Fatalf("received %d frames, want 3", n)
	}
	conserved(t, m, 3)
	if got := m.Transmit(batch[:n]); got != 3 {
		t.Fatalf("transmitted %d, want 3", got)
	}
	conserved(t, m, 0)
	if diff := cmp.Diff([]string{"frame 0", "frame 1", "frame 2"}, collect(m)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	conserved(t, m, 0)
}

func TestAFrameMayGrowInPlace(t *testing.T) {
	m := newMemory(t, 1)
	m.Deliver([]byte("short"))
	batch := make([]Frame, 1)
	m.Receive(batch)
	if cap(batch[0].Bytes) != 128 {
		t.Fatalf("room for %d bytes, want 128", cap(batch[0].Bytes))
	}
	batch[0].Bytes = append(batch[0].Bytes, " and longer"...)
	m.Transmit(batch)
	if diff := cmp.Diff([]string{"short and longer"}, collect(m)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestWithoutAFreeFrameWhatArrivesIsDroppedAndCounted(t *testing.T) {
	m := newMemory(t, 2)
	if !m.Deliver([]byte("a")) || !m.Deliver([]byte("b")) {
		t.Fatal("two frames do not fit in a port of two")
	}
	if m.Deliver([]byte("c")) {
		t.Error("a third frame was taken")
	}
	batch := make([]Frame, 2)
	m.Recycle(batch[:m.Receive(batch)])
	if !m.Deliver([]byte("d")) {
		t.Error("recycled frames are not used again")
	}
	if got := m.Stats(); got.Dropped != 1 || got.Received != 2 {
		t.Errorf("dropped %d, received %d, want 1 and 2", got.Dropped, got.Received)
	}
	conserved(t, m, 0)
}

func TestAFrameThatIsTooLongIsDroppedAndCounted(t *testing.T) {
	m := newMemory(t, 2)
	if m.Deliver(make([]byte, 129)) {
		t.Error("129 bytes were taken by a port of 128")
	}
	if got := m.Stats().Dropped; got != 1 {
		t.Errorf("dropped %d, want 1", got)
	}
}

func TestALostFrameIsNoticed(t *testing.T) {
	m := newMemory(t, 2)
	m.Deliver([]byte("a"))
	m.Receive(make([]Frame, 1))
	if m.Conserved(0) == nil {
		t.Error("a frame that is nowhere was not noticed")
	}
}

func TestAFrameInTwoPlacesIsNoticed(t *testing.T) {
	m := newMemory(t, 2)
	m.Deliver([]byte("a"))
	m.Deliver([]byte("b"))
	batch := make([]Frame, 2)
	m.Receive(batch)
	batch[1] = batch[0]
	m.Recycle(batch)
	if m.Conserved(0) == nil {
		t.Error("a frame that was given back twice in place of another was not noticed")
	}
}

func TestWaitEndsWhenAFrameArrives(t *testing.T) {
	m := newMemory(t, 1)
	done := make(chan error)
	go func() { done <- m.Wait(time.Minute) }()
	m.Deliver([]byte("a"))
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting")
	}
}

func TestWaitDoesNotMissAFrameThatCameBefore(t *testing.T) {
	m := newMemory(t, 2)
	m.Deliver([]byte("a"))
	start := time.Now()
	if err := m.Wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("waited %v", d)
	}
}

func TestWaitEndsWhenTheTimeIsOver(t *testing.T) {
	m := newMemory(t, 1)
	start := time.Now()
	if err := m.Wait(20 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < 20*time.Millisecond {
		t.Errorf("waited %v only", d)
	}
}

func TestLeftTellsThatFramesWereSent(t *testing.T) {
	m := newMemory(t, 1)
	select {
	case <-m.Left():
		t.Fatal("a token before anything was sent")
	default:
	}
	m.Deliver([]byte("a"))
	batch := make([]Frame, 1)
	m.Transmit(batch[:m.Receive(batch)])
	select {
	case <-m.Left():
	default:
		t.Error("no token after a frame was sent")
	}
}

func TestAClosedPortTakesNothing(t *testing.T) {
	m := newMemory(t, 1)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m.Deliver([]byte("a")) {
		t.Error("a closed port took a frame")
	}
}

func TestAPortWithoutRoomIsRefused(t *testing.T) {
	for _, c := range [][2]int{{0, 2048}, {1, 63}, {-1, 2048}} {
		if _, err := NewMemory(c[0], c[1]); err == nil {
			t.Errorf("%d frames of %d bytes: no error", c[0], c[1])
		}
	}
}

func TestMovingFramesDoesNotAllocate(t *testing.T) {
	m := newMemory(t, 8)
	frame, batch := make([]byte, 64), make([]Frame, 8)
	drop := func([]byte) {}
	if n := testing.AllocsPerRun(100, func() {
		m.Deliver(frame)
		m.Transmit(batch[:m.Receive(batch)])
		m.Collect(drop)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
