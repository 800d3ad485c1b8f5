package xsk

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestOversizeIsCounted: a frame that does not fit into a chunk does not arrive, and the
// kernel's counter says so; the longest one that fits does.
func TestOversizeIsCounted(t *testing.T) {
	cases := []struct {
		name    string
		chunk   int
		length  func(most int) int
		arrives bool
	}{
		{"the longest frame of a 2 KiB chunk", 2048, func(most int) int { return most }, true},
		{"one byte more than a 2 KiB chunk takes", 2048, func(most int) int { return most + 1 }, false},
		{"a 3000 byte frame into 4 KiB chunks", 4096, func(int) int { return 3000 }, true},
		{"a 3000 byte frame into 2 KiB chunks", 2048, func(int) int { return 3000 }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sp := newSpace(t)
			veth{nearName: "a", farName: "b", near: sp, far: sp, mtu: 3400}.up(t)
			receivers, senders := newUmem(t, UmemConfig{Frames: 64, ChunkSize: c.chunk}), newUmem(t, UmemConfig{Frames: 64, ChunkSize: 4096})
			in, out := sp.open(receivers, Config{Device: "b", Fill: 32}), sp.open(senders, Config{Device: "a"})
			sp.redirect("b", in)
			in.Refill(32)
			var one [1]Frame
			makeFrames(senders, one[:], 7)
			one[0].Len = uint32(c.length(receivers.MaxFrame()))
			if _, err := out.Transmit(one[:]); err != nil {
				t.Fatal(err)
			}
			if err := out.Kick(); err != nil {
				t.Fatal(err)
			}
			var got int
			await(t, 5*time.Second, "the frame arrived or was counted", func() bool {
				st, err := in.Stats()
				if err != nil {
					t.Fatal(err)
				}
				got += in.Receive(one[:])
				return got > 0 || st.Kernel.Dropped > 0
			})
			if (got == 1) != c.arrives {
				t.Errorf("a frame of %d bytes: arrived %t, want %t", c.length(receivers.MaxFrame()), got == 1, c.arrives)
			}
			if got == 1 && len(receivers.Bytes(one[0])) != c.length(receivers.MaxFrame()) {
				t.Errorf("arrived with %d bytes, sent with %d", len(receivers.Bytes(one[0])), c.length(receivers.MaxFrame()))
			}
			conserved(t, receivers, senders)
		})
	}
}

// TestDeviceTrouble: whatever happens to the device, there is an error that names it, no
// panic, and no frame is forgotten.
func TestDeviceTrouble(t *testing.T) {
	cases := []struct {
		name   string
		happen func(sp *space)
		kick   error // nil: sending reports no error
		wait   error
	}{
		{"own link set down", func(sp *space) { sp.lower("a") }, ErrDown, ErrDown},
		{"peer's link set down", func(sp *space) { sp.lower("b") }, nil, nil},
		{"device removed", func(sp *space) { sp.remove("a") }, ErrGone, ErrGone},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sp := newSpace(t)
			veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
			u := newUmem(t, UmemConfig{Frames: 256})
			s := sp.open(u, Config{Device: "a"})
			s.Refill(64)
			c.happen(sp)

			batch := make([]Frame, 40) // more than the kernel takes in one call
			makeFrames(u, batch, 0)
			if n, err := s.Transmit(batch); n != len(batch) || err != nil {
				t.Fatalf("transmit: %d taken, %v", n, err)
			}
			check := func(verb string, err, want error) {
				t.Helper()
				if !errors.Is(err, want) {
					t.Errorf("%s: error %v, want %v", verb, err, want)
				}
				if want != nil && !strings.Contains(err.Error(), "a queue 0") {
					t.Errorf("%s: the error does not name device and queue: %v", verb, err)
				}
			}
			check("kick", s.Kick(), c.kick)
			_, err := s.Wait(20 * time.Millisecond)
			check("wait with frames pending", err, c.wait)
			conserved(t, u)
			if c.kick == nil {
				// The device takes the frames and drops them: each is counted.
				if s.stats.DeviceDrops != uint64(len(batch)) || s.Complete() != 0 || u.held != 0 || s.sending != 0 {
					t.Errorf("dropped by the device: %d of %d counted, %d still being sent", s.stats.DeviceDrops, len(batch), s.sending)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			conserved(t, u)
			if got := u.Census(); got.Free != got.Total {
				t.Errorf("after the close not all frames are back: %+v", got)
			}
		})
	}
}

// TestDownIsNoticedWhileIdle: nothing to send, nothing comes: the wait itself tells.
func TestDownIsNoticedWhileIdle(t *testing.T) {
	sp := newSpace(t)
	veth{nearName: "a", farName: "b", near: sp, far: sp}.up(t)
	s := sp.open(newUmem(t, UmemConfig{Frames: 64}), Config{Device: "a"})
	if ready, err := s.Wait(5 * time.Millisecond); ready || err != nil {
		t.Fatalf("wait on an idle device: %t, %v", ready, err)
	}
	sp.lower("a")
	if _, err := s.Wait(5 * time.Millisecond); !errors.Is(err, ErrDown) {
		t.Errorf("wait on a device that is down: %v, want ErrDown", err)
	}
	sp.raise("a")
	await(t, time.Second, "the device works again after it was set up", func() bool {
		_, err := s.Wait(time.Millisecond)
		return err == nil
	})
}
