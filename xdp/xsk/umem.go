package xsk

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"
)

// packetHeadroom is what the kernel leaves free before each received frame
// (XDP_PACKET_HEADROOM of linux/bpf.h).
const packetHeadroom = unix.XDP_PACKET_HEADROOM

const (
	minChunk = 2048    // XDP_UMEM_MIN_CHUNK_SIZE of the kernel
	maxUmem  = 1 << 32 // bytes; far above need, keeps every index within 32 bits
)

// UmemConfig describes frame memory.
type UmemConfig struct {
	Frames    int // chunks, 1 or more. Enough: for each socket its Fill ring, plus what is in flight
	ChunkSize int // bytes a chunk: 2048, or 4096 where the page size allows it. 0 means 2048
	Headroom  int // bytes kept free before a frame, in addition to the kernel's 256
}

// Umem is frame memory shared with the kernel, cut into chunks of one size, together with
// the pool of free chunks and the record of where each chunk is. Not safe for concurrent
// use: one goroutine owns it with all its sockets.
type Umem struct {
	mem       []byte
	size      uint64
	chunkSize uint32
	shift     uint
	headroom  uint32
	pool      []uint32      // free chunks, the most recently used last
	where     []whereabouts // by chunk
	held      int           // chunks in the owner's hands
	withheld  int
	sockets   []*Socket // nil where one was closed
}

// NewUmem maps and touches the memory. The kernel pins it when the first socket opens;
// that needs CAP_IPC_LOCK when it exceeds RLIMIT_MEMLOCK, which Open reports.
func NewUmem(c UmemConfig) (*Umem, error) {
	if c.ChunkSize == 0 {
		c.ChunkSize = minChunk
	}
	if err := c.check(unix.Getpagesize()); err != nil {
		return nil, err
	}
	size := c.Frames * c.ChunkSize
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("xsk: map %d bytes of frame memory: %w: ask for fewer than %d frames", size, err, c.Frames)
	}
	u := &Umem{
		mem:       mem,
		size:      uint64(size),
		chunkSize: uint32(c.ChunkSize),
		shift:     uint(bits.TrailingZeros(uint(c.ChunkSize))),
		headroom:  uint32(c.Headroom),
		pool:      make([]uint32, c.Frames),
		where:     make([]whereabouts, c.Frames),
	}
	for i := range u.pool {
		u.pool[i] = uint32(c.Frames - 1 - i)
	}
	return u, nil
}

func (c UmemConfig) check(page int) error {
	switch {
	case c.ChunkSize < minChunk || c.ChunkSize > page || bits.OnesCount(uint(c.ChunkSize)) != 1:
		return fmt.Errorf("xsk: chunk size %d: the kernel takes a power of two from %d to the page size %d", c.ChunkSize, minChunk, page)
	case c.Frames < 1 || c.Frames > maxUmem/c.ChunkSize:
		return fmt.Errorf("xsk: %d frames of %d bytes: ask for 1 to %d", c.Frames, c.ChunkSize, maxUmem/c.ChunkSize)
	case c.Headroom < 0 || c.Headroom > c.ChunkSize-packetHeadroom-MinFrame:
		return fmt.Errorf("xsk: headroom %d: a chunk of %d bytes has room for 0 to %d", c.Headroom, c.ChunkSize, c.ChunkSize-packetHeadroom-MinFrame)
	}
	return nil
}

// Frames returns the number of chunks, wherever they are.
func (u *Umem) Frames() int { return len(u.where) }

// Free returns the number of chunks in the pool.
func (u *Umem) Free() int { return len(u.pool) }

// MaxFrame returns the longest frame, in bytes with its Ethernet header, that a socket of
// this Umem receives. A longer one is dropped by the kernel and counted in
// Stats.Kernel.Dropped: compare a device's MTU with it before use.
func (u *Umem) MaxFrame() int { return int(u.chunkSize - u.headroom - packetHeadroom) }

// Bytes returns the bytes of f in place. The capacity reaches to the end of f's chunk, so
// that a frame can be made longer without a copy. It is nil when f lies outside the memory
// or crosses the end of a chunk. Valid while the owner holds f.
func (u *Umem) Bytes(f Frame) []byte {
	if _, ok := u.chunk(f); !ok {
		return nil
	}
	end := (f.Addr | uint64(u.chunkSize-1)) + 1
	return u.mem[f.Addr : f.Addr+uint64(f.Len) : end]
}

// Allocate takes free chunks for packets of our own making into batch and returns how many
// there were. Each frame has the address at which a received one would start, and length 0.
func (u *Umem) Allocate(batch []Frame) int {
	n := min(len(batch), len(u.pool))
	top := len(u.pool)
	for k := range batch[:n] {
		i := u.pool[top-1-k]
		u.where[i] = at(held, 0)
		batch[k] = Frame{Addr: uint64(i)<<u.shift + uint64(u.headroom) + packetHeadroom}
	}
	u.pool = u.pool[:top-n]
	u.held += n
	return n
}

// Release returns frames that the owner holds to the pool: those it drops. It stops at the
// first frame that the owner does not hold, with ErrFrame; the frames before it, whose
// number it returns, are released.
func (u *Umem) Release(batch []Frame) (int, error) {
	for k := range batch {
		if !u.reclaim(batch[k].Addr, at(held, 0)) {
			u.held -= k
			return k, frameError("release", u, batch[k])
		}
	}
	u.held -= len(batch)
	return len(batch), nil
}

// Close closes the sockets that are still open and unmaps the memory. Frames and slices of
// Bytes are invalid afterwards. Closing twice does nothing.
func (u *Umem) Close() error {
	var errs []error
	for _, s := range u.sockets {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if u.mem != nil {
		errs = append(errs, unix.Munmap(u.mem))
	}
	*u = Umem{shift: u.shift, chunkSize: u.chunkSize}
	return errors.Join(errs...)
}

// open returns a socket that has the memory registered, or nil when none has.
func (u *Umem) open() *Socket {
	for _, s := range u.sockets {
		if s != nil {
			return s
		}
	}
	return nil
}

// admit gives s a slot of the Umem.
func (u *Umem) admit(s *Socket) error {
	for i, o := range u.sockets {
		if o == nil {
			u.sockets[i], s.slot = s, i
			return nil
		}
	}
	if len(u.sockets) == maxSockets {
		return fmt.Errorf("xsk: %d sockets share this frame memory already: use another Umem", maxSockets)
	}
	s.slot = len(u.sockets)
	u.sockets = append(u.sockets, s)
	return nil
}
