package xsk

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// offline makes a socket without a kernel: its rings lie on the heap and the test plays the
// kernel's part, well or badly.
func offline(t testing.TB, u *Umem, entries int) *Socket {
	t.Helper()
	ringOf := func() ring {
		r := deadRing()
		r.size = uint32(entries)
		return r
	}
	s := &Socket{umem: u, fd: -1, device: "none"}
	s.fill = addressRing{ringOf(), make([]uint64, entries)}
	s.completion = addressRing{ringOf(), make([]uint64, entries)}
	s.rx = descriptorRing{ringOf(), make([]unix.XDPDesc, entries)}
	s.tx = descriptorRing{ringOf(), make([]unix.XDPDesc, entries)}
	if err := u.admit(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// arrive plays the kernel: it puts a descriptor into the RX ring.
func (s *Socket) arrive(d unix.XDPDesc) {
	p := s.rx.producer.Load()
	*s.rx.entry(p, 0) = d
	s.rx.producer.Store(p + 1)
}

// takeFill plays the kernel: it takes a chunk from the fill ring.
func (s *Socket) takeFill() uint64 {
	c := s.fill.consumer.Load()
	s.fill.consumer.Store(c + 1)
	return *s.fill.entry(c, 0)
}

// finishOne plays the kernel: it sends one frame and puts its address into the completion
// ring.
func (s *Socket) finishOne() {
	c := s.tx.consumer.Load()
	s.tx.consumer.Store(c + 1)
	s.finish(s.tx.entry(c, 0).Addr)
}

// finish plays the kernel: it puts an address into the completion ring.
func (s *Socket) finish(addr uint64) {
	p := s.completion.producer.Load()
	*s.completion.entry(p, 0) = addr
	s.completion.producer.Store(p + 1)
}

// TestRoundTrip: one frame through every place, with the books checked at each.
func TestRoundTrip(t *testing.T) {
	u := newUmem(t, UmemConfig{Frames: 4, Headroom: 32})
	s := offline(t, u, 4)
	step := func(what string, want Census) {
		t.Helper()
		want.Total = 4
		if diff := cmp.Diff(want, u.Census()); diff != "" {
			t.Errorf("%s: census (-want +got):\n%s", what, diff)
		}
		conserved(t, u)
	}
	step("new", Census{Free: 4})
	s.Refill(2)
	step("two chunks given to receive into", Census{Free: 2, Fill: 2})
	chunk := s.takeFill()
	step("the kernel took one", Census{Free: 2, Fill: 2})
	s.arrive(unix.XDPDesc{Addr: chunk + packetHeadroom + 32, Len: 60})
	step("and received a frame", Census{Free: 2, Fill: 1, Received: 1})
	var batch [4]Frame
	if n := s.Receive(batch[:]); n != 1 || batch[0] != (Frame{Addr: chunk + packetHeadroom + 32, Len: 60}) {
		t.Fatalf("received %d frames, first %+v", n, batch[0])
	}
	step("which the owner took", Census{Free: 2, Fill: 1, Held: 1})
	b := u.Bytes(batch[0])
	if len(b) != 60 || cap(b) != 2048-packetHeadroom-32 {
		t.Errorf("its bytes: length %d, capacity %d", len(b), cap(b))
	}
	batch[0].Len = uint32(cap(b)) // an answer that is longer than the request
	if n, err := s.Transmit(batch[:1]); n != 1 || err != nil {
		t.Fatalf("transmit: %d, %v", n, err)
	}
	step("and sent", Census{Free: 2, Fill: 1, Transmit: 1})
	s.finishOne()
	step("the kernel is done with it", Census{Free: 2, Fill: 1, Completion: 1})
	if n := s.Complete(); n != 1 {
		t.Fatalf("completed %d", n)
	}
	step("and it is free again", Census{Free: 3, Fill: 1})
}

// TestRingsWrap: the indexes of a ring run through 2^32 unharmed.
func TestRingsWrap(t *testing.T) {
	u := newUmem(t, UmemConfig{Frames: 8})
	s := offline(t, u, 4)
	for _, r := range []*ring{&s.fill.ring, &s.rx.ring, &s.tx.ring, &s.completion.ring} {
		r.prod, r.cons = ^uint32(0)-5, ^uint32(0)-5
		r.producer.Store(r.prod)
		r.consumer.Store(r.cons)
	}
	var batch [4]Frame
	for i := range 20 {
		if n := s.Refill(3); n != 3 {
			t.Fatalf("round %d: refilled %d", i, n)
		}
		for range 3 {
			s.arrive(unix.XDPDesc{Addr: s.takeFill() + packetHeadroom, Len: 60})
		}
		if n := s.Receive(batch[:]); n != 3 {
			t.Fatalf("round %d: received %d", i, n)
		}
		if n, err := s.Transmit(batch[:3]); n != 3 || err != nil {
			t.Fatalf("round %d: transmitted %d, %v", i, n, err)
		}
		for range 3 {
			s.finishOne()
		}
		if n := s.Complete(); n != 3 {
			t.Fatalf("round %d: completed %d", i, n)
		}
		conserved(t, u)
	}
}

// TestRingsFull: a ring takes what it has room for, and the rest stays with the owner.
func TestRingsFull(t *testing.T) {
	u := newUmem(t, UmemConfig{Frames: 16})
	s := offline(t, u, 4)
	if n := s.Refill(16); n != 4 {
		t.Errorf("refilled %d into a fill ring of 4", n)
	}
	if n := s.Refill(16); n != 0 {
		t.Errorf("refilled %d into a full fill ring", n)
	}
	if n := s.Refill(-1); n != 0 {
		t.Errorf("refilled %d with a limit of -1", n)
	}
	batch := make([]Frame, 6)
	makeFrames(u, batch, 0)
	if n, err := s.Transmit(batch); n != 4 || err != nil {
		t.Errorf("transmitted %d into a TX ring of 4, %v", n, err)
	}
	if n, err := u.Release(batch[4:]); n != 2 || err != nil {
		t.Errorf("released %d of the 2 that are left, %v", n, err)
	}
	rest := make([]Frame, 32)
	if n := u.Allocate(rest); n != 8 {
		t.Errorf("allocated %d of 8 free frames", n)
	}
	if n := s.Refill(1); n != 0 {
		t.Errorf("refilled %d from an empty pool", n)
	}
	conserved(t, u)
}

// TestFramesRefused: a frame that must not be given away is refused, named, and changes
// nothing; the frames before it go.
func TestFramesRefused(t *testing.T) {
	u := newUmem(t, UmemConfig{Frames: 8})
	s := offline(t, u, 8)
	s.Refill(1)
	var sent [1]Frame
	makeFrames(u, sent[:], 0)
	if _, err := s.Transmit(sent[:]); err != nil {
		t.Fatal(err)
	}
	var good [2]Frame
	cases := []struct {
		name    string
		frame   func() Frame
		release error // what Release says to it
	}{
		{"in the pool", func() Frame { return Frame{Addr: uint64(u.pool[0]) * 2048, Len: 60} }, ErrFrame},
		{"given to receive into", func() Frame { return Frame{Addr: *s.fill.entry(0, 0), Len: 60} }, ErrFrame},
		{"sent before", func() Frame { return sent[0] }, ErrFrame},
		{"beyond the memory", func() Frame { return Frame{Addr: 8 * 2048, Len: 60} }, ErrFrame},
		{"far beyond the memory", func() Frame { return Frame{Addr: ^uint64(0), Len: 60} }, ErrFrame},
		{"across the end of its chunk", func() Frame { return Frame{Addr: good[1].Addr, Len: 2048} }, nil},
		{"of absurd length", func() Frame { return Frame{Addr: good[1].Addr, Len: ^uint32(0)} }, nil},
		{"empty", func() Frame { return Frame{Addr: good[1].Addr} }, nil},
		{"shorter than an Ethernet header", func() Frame { return Frame{Addr: good[1].Addr, Len: MinFrame - 1} }, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if n := makeFrames(u, good[:], 0); n != 2 {
				t.Fatalf("%d frames left", n)
			}
			bad := c.frame()
			before := s.stats.Refused
			n, err := s.Transmit([]Frame{good[0], bad})
			if n != 1 || !errors.Is(err, ErrFrame) {
				t.Errorf("transmit: %d taken, %v: want 1 and ErrFrame", n, err)
			}
			if s.stats.Refused != before+1 {
				t.Errorf("%d frames counted as refused: want one more than %d", s.stats.Refused, before)
			}
			conserved(t, u)
			if _, err := u.Release([]Frame{bad}); !errors.Is(err, c.release) {
				t.Errorf("release: %v, want %v", err, c.release)
			}
			conserved(t, u)
			if c.release != nil {
				if _, err := u.Release(good[1:]); err != nil {
					t.Errorf("release of the frame that was never given away: %v", err)
				}
			}
			s.finishOne()
			s.Complete()
			sent[0] = Frame{Addr: sent[0].Addr, Len: 60}
			conserved(t, u)
		})
	}
}

// TestReleaseTwice: a frame cannot be freed twice, not even within one batch.
func TestReleaseTwice(t *testing.T) {
	u := newUmem(t, UmemConfig{Frames: 4})
	var batch [1]Frame
	u.Allocate(batch[:])
	n, err := u.Release([]Frame{batch[0], batch[0]})
	if n != 1 || !errors.Is(err, ErrFrame) {
		t.Errorf("released %d, %v: want 1 and ErrFrame", n, err)
	}
	conserved(t, u)
}

// TestMalformedFromKernel: a descriptor in a ring that names no chunk of this socket is
// counted and left out; it becomes no index and no frame.
func TestMalformedFromKernel(t *testing.T) {
	cases := []struct {
		name string
		desc func(chunk uint64) unix.XDPDesc
	}{
		{"beyond the memory", func(uint64) unix.XDPDesc { return unix.XDPDesc{Addr: 1 << 40, Len: 60} }},
		{"across the end of the chunk", func(c uint64) unix.XDPDesc { return unix.XDPDesc{Addr: c + 2000, Len: 60} }},
		{"a chunk that was not given", func(uint64) unix.XDPDesc { return unix.XDPDesc{Addr: 7 * 2048, Len: 60} }},
		{"a chunk given to another socket", func(c uint64) unix.XDPDesc { return unix.XDPDesc{Addr: c + 2048, Len: 60} }},
		{"a part of a larger packet", func(c uint64) unix.XDPDesc { return unix.XDPDesc{Addr: c, Len: 60, Options: unix.XDP_PKT_CONTD} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := newUmem(t, UmemConfig{Frames: 8})
			s, other := offline(t, u, 4), offline(t, u, 4)
			s.Refill(1)
			other.Refill(1)
			s.arrive(c.desc(s.takeFill()))
			s.finish(5 * 2048)
			s.finish(1 << 40)
			var batch [4]Frame
			if n := s.Receive(batch[:]); n != 0 {
				t.Errorf("received %+v", batch[0])
			}
			if n := s.Complete(); n != 0 {
				t.Errorf("completed %d frames that were never sent", n)
			}
			if s.stats.Malformed != 3 {
				t.Errorf("%d counted as malformed: want 3", s.stats.Malformed)
			}
			conserved(t, u)
		})
	}
}

// TestDamagedIndexes: an index in the shared memory that cannot be is not followed.
func TestDamagedIndexes(t *testing.T) {
	u := newUmem(t, UmemConfig{Frames: 16})
	s := offline(t, u, 4)
	s.Refill(4)
	batch := make([]Frame, 6)
	makeFrames(u, batch, 0)
	if _, err := s.Transmit(batch); err != nil {
		t.Fatal(err)
	}
	conserved(t, u)
	s.rx.producer.Store(1000)
	s.completion.producer.Store(5)
	s.fill.consumer.Store(7)
	s.tx.consumer.Store(1 << 31)
	taken, err := s.Transmit(batch[4:])
	moved := []int{s.Receive(batch[:4]), s.Complete(), s.Refill(4), taken}
	if diff := cmp.Diff([]int{0, 0, 0, 0}, moved); diff != "" || err != nil {
		t.Errorf("frames moved by Receive, Complete, Refill, Transmit (-want +got):\n%s%v", diff, err)
	}
	if s.stats.Malformed != 0 {
		t.Errorf("%d entries were read that are not there", s.stats.Malformed)
	}
	if err := u.Conserved(); err == nil {
		t.Error("the check does not see the damage")
	}
}

// TestConservationIsChecked: the check finds each way in which the accounts can differ.
func TestConservationIsChecked(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(u *Umem, s *Socket)
	}{
		{"a free chunk is lost", func(u *Umem, s *Socket) { u.pool = u.pool[1:] }},
		{"a chunk is in the pool twice", func(u *Umem, s *Socket) { u.pool[0] = u.pool[1] }},
		{"a chunk in the pool is recorded as held", func(u *Umem, s *Socket) { u.where[u.pool[0]] = at(held, 0) }},
		{"a held frame is not recorded", func(u *Umem, s *Socket) { u.held--; s.filled++ }},
		{"a chunk changed its socket", func(u *Umem, s *Socket) { u.where[*s.fill.entry(0, 0)>>u.shift] = at(fill, 1) }},
		{"a chunk has no known place", func(u *Umem, s *Socket) { u.where[u.pool[0]] = 7 }},
		{"a chunk belongs to a socket that is not", func(u *Umem, s *Socket) { u.where[*s.fill.entry(0, 0)>>u.shift] = at(fill, 9) }},
		{"more completions than frames were sent", func(u *Umem, s *Socket) { s.finish(0); s.finish(0); s.finish(0) }},
		{"more chunks to fill than were given", func(u *Umem, s *Socket) { s.fill.prod += 2; s.fill.producer.Store(s.fill.prod) }},
		{"an index of a ring ran away", func(u *Umem, s *Socket) { s.tx.consumer.Store(9) }},
		{"a closed socket still has chunks", func(u *Umem, s *Socket) {
			u.sockets[s.slot] = nil
			u.withheld += s.filled + s.sending
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := newUmem(t, UmemConfig{Frames: 16})
			s := offline(t, u, 8)
			offline(t, u, 8)
			s.Refill(3)
			var batch [4]Frame
			makeFrames(u, batch[:], 0)
			if _, err := s.Transmit(batch[:2]); err != nil {
				t.Fatal(err)
			}
			conserved(t, u)
			c.spoil(u, s)
			if err := u.Conserved(); err == nil {
				t.Error("not found")
			}
		})
	}
}

// TestClosingWithholds: chunks that a device may still touch after the close are not given
// out again, and are counted. The others are free.
func TestClosingWithholds(t *testing.T) {
	cases := []struct {
		name string
		mode Mode
		want Census
	}{
		{"copy: what was taken for sending and not completed", ModeCopy, Census{Free: 7, Withheld: 1, Total: 8}},
		{"zero-copy: all that the device was given", ModeZeroCopy, Census{Free: 3, Withheld: 5, Total: 8}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := newUmem(t, UmemConfig{Frames: 8})
			s := offline(t, u, 8)
			s.mode = c.mode
			s.Refill(3)
			batch := make([]Frame, 2)
			makeFrames(u, batch, 0)
			if _, err := s.Transmit(batch); err != nil {
				t.Fatal(err)
			}
			s.tx.consumer.Store(1) // the kernel took one and has not completed it
			s.recallPending()
			s.retire()
			if diff := cmp.Diff(c.want, u.Census()); diff != "" {
				t.Errorf("census (-want +got):\n%s", diff)
			}
			conserved(t, u)
		})
	}
}
