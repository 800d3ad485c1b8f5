package xsk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzDescriptor feeds the fields of ring descriptors to everything that trusts them and
// compares with a model that goes byte by byte. The state byte chooses who holds the chunk.
func FuzzDescriptor(f *testing.F) {
	const frames, chunk = 4, 2048
	f.Add(uint64(256), uint32(60), uint32(0), uint8(0))
	f.Add(uint64(256), uint32(60), uint32(0), uint8(1))
	f.Add(uint64(256), uint32(60), uint32(0), uint8(2))
	f.Add(uint64(256), uint32(60), uint32(0), uint8(3))
	f.Add(uint64(256), uint32(60), uint32(1), uint8(2))
	f.Add(uint64(0), uint32(2048), uint32(0), uint8(1))
	f.Add(uint64(1), uint32(2048), uint32(0), uint8(1))
	f.Add(uint64(8191), uint32(1), uint32(0), uint8(2))
	f.Add(uint64(8192), uint32(0), uint32(0), uint8(2))
	f.Add(^uint64(0), ^uint32(0), ^uint32(0), uint8(9))
	f.Add(uint64(1)<<32, uint32(14), uint32(0), uint8(1))
	f.Add(uint64(4096), uint32(13), uint32(0), uint8(1))

	f.Fuzz(func(t *testing.T, addr uint64, length, options uint32, state uint8) {
		u := newUmem(t, UmemConfig{Frames: frames})
		s := offline(t, u, 4)
		places := []whereabouts{at(free, 0), at(held, 0), at(fill, 0), at(tx, 0), at(fill, 1), at(tx, 1)}
		is := places[int(state)%len(places)]
		set := func() {
			u.pool, u.held, s.filled, s.sending = u.pool[:0], 0, 0, 0
			for i := range u.where {
				u.where[i] = is
			}
		}
		// The model: every byte of the frame is in the memory and in the same chunk.
		inside := addr < frames*chunk
		for i := uint64(0); inside && i < uint64(length); i++ {
			inside = addr+i < frames*chunk && (addr+i)/chunk == addr/chunk
		}
		frame := Frame{Addr: addr, Len: length}

		set()
		if b := u.Bytes(frame); (b != nil) != inside || inside && (len(b) != int(length) || uint64(cap(b)) != chunk-addr%chunk) {
			t.Errorf("bytes: %d with room for %d; inside %t", len(b), cap(b), inside)
		}
		s.filled = 4
		s.arrive(unix.XDPDesc{Addr: addr, Len: length, Options: options})
		var batch [4]Frame
		if got, want := s.Receive(batch[:]) == 1, inside && options == 0 && is == at(fill, 0); got != want {
			t.Errorf("received %t: want %t", got, want)
		}

		set()
		u.held = 4
		n, err := s.Transmit([]Frame{frame})
		want := inside && length >= MinFrame && is == at(held, 0)
		if (n == 1) != want || (err == nil) != want {
			t.Errorf("transmitted %d, %v: want %t", n, err, want)
		}

		set()
		u.held = 4
		n, err = u.Release([]Frame{frame})
		want = addr < frames*chunk && is == at(held, 0)
		if (n == 1) != want || (err == nil) != want {
			t.Errorf("released %d, %v: want %t", n, err, want)
		}

		set()
		s.sending = 4
		s.finish(addr)
		if got, want := s.Complete() == 1, addr < frames*chunk && is == at(tx, 0); got != want {
			t.Errorf("completed %t: want %t", got, want)
		}
	})
}
