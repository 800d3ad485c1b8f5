package xsk

import "golang.org/x/sys/unix"

// MinFrame is the shortest frame that can be transmitted: an Ethernet header.
const MinFrame = 14

// Frame names the bytes in use inside one chunk of a Umem. It is a value without
// pointers; it grants nothing by itself, the Umem's record says who holds the chunk.
type Frame struct {
	Addr uint64 // offset of the first byte from the start of the Umem
	Len  uint32 // bytes in use
}

// place is where a chunk is at the moment. A chunk is in exactly one place.
type place uint16

const (
	free     place = iota // in the Umem's pool
	held                  // in the hands of the owner, by Receive or Allocate
	fill                  // given to a socket to receive into
	tx                    // given to a socket to be sent
	withheld              // a closed socket's device may still touch it

	placeBits = 3
)

// whereabouts is a place and, for fill and tx, the slot of the socket in its Umem.
type whereabouts uint16

func at(p place, socket int) whereabouts { return whereabouts(p) | whereabouts(socket)<<placeBits }

func (w whereabouts) place() place { return place(w) & (1<<placeBits - 1) }

func (w whereabouts) socket() int { return int(w >> placeBits) }

// maxSockets bounds the sockets of one Umem, so that a slot fits into whereabouts.
const maxSockets = 1 << (16 - placeBits)

// chunk finds the chunk that holds all of f. It refuses every frame the kernel would
// refuse (net/xdp/xsk_queue.h, xp_aligned_validate_desc): beyond the memory, or across
// the end of its chunk. It reads nothing but its operands and cannot overflow.
func (u *Umem) chunk(f Frame) (index uint32, ok bool) {
	if f.Addr >= u.size {
		return 0, false
	}
	offset := uint32(f.Addr) & (u.chunkSize - 1)
	if f.Len > u.chunkSize-offset {
		return 0, false
	}
	return uint32(f.Addr >> u.shift), true
}

// accept turns a descriptor of the RX ring into a frame that the owner holds. The ring is
// memory shared with the kernel, so that each descriptor is checked: a bad one must not
// become an index, and a chunk that the socket was not given must not be taken.
func (u *Umem) accept(d *unix.XDPDesc, from whereabouts) (Frame, bool) {
	f := Frame{Addr: d.Addr, Len: d.Len}
	i, ok := u.chunk(f)
	if !ok || d.Options != 0 || u.where[i] != from {
		return Frame{}, false
	}
	u.where[i] = at(held, 0)
	return f, true
}

// surrender checks that f may be sent and is held, and moves it to the place to.
func (u *Umem) surrender(f Frame, to whereabouts) bool {
	i, ok := u.chunk(f)
	if !ok || f.Len < MinFrame || u.where[i] != at(held, 0) {
		return false
	}
	u.where[i] = to
	return true
}

// reclaim takes back the chunk at addr, which must be in the place from, into the pool.
func (u *Umem) reclaim(addr uint64, from whereabouts) bool {
	if addr >= u.size {
		return false
	}
	i := uint32(addr >> u.shift)
	if u.where[i] != from {
		return false
	}
	u.where[i] = at(free, 0)
	u.pool = append(u.pool, i) // never grows: the pool has room for every chunk
	return true
}

// String returns the word that errors use.
func (p place) String() string {
	switch p {
	case free:
		return "free"
	case held:
		return "held"
	case fill:
		return "fill"
	case tx:
		return "tx"
	case withheld:
		return "withheld"
	}
	return "unknown"
}
