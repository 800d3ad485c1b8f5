package xsk

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/sys/unix"
)

// Mode is how frames get from the driver to the Umem.
type Mode uint8

const (
	ModeCopy     Mode = iota // the kernel copies each frame; every device offers it
	ModeZeroCopy             // the driver works in the Umem itself
	ModeAuto                 // in a Config only: zero-copy where the driver offers it, else copy
)

// String returns copy, zero-copy or auto.
func (m Mode) String() string {
	switch m {
	case ModeCopy:
		return "copy"
	case ModeZeroCopy:
		return "zero-copy"
	case ModeAuto:
		return "auto"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

const (
	defaultRing     = 2048
	maxRing         = 1 << 20
	defaultPatience = 2 * time.Second
	bindEvery       = 2 * time.Millisecond
)

// Config says what a socket is bound to. The zero value of each field but Device is usable.
type Config struct {
	Device string // name in the network namespace of the calling thread
	Queue  int    // queue of the device, from 0
	Mode   Mode   // mode asked for; a second socket on a Umem gets the first one's

	// Ring sizes in entries: powers of two; 0 means 2048.
	Fill, Receive, Transmit, Completion int

	// Patience is how long to go on trying while the queue is taken: the kernel releases
	// the queue of a closed socket some 20 ms later, more when it is busy. 0 means 2 s.
	Patience time.Duration
}

// Socket is one AF_XDP socket, bound to one queue of one device. Not safe for concurrent
// use: it belongs to the goroutine that owns its Umem.
type Socket struct {
	fill       addressRing
	rx         descriptorRing
	tx         descriptorRing
	completion addressRing

	umem    *Umem
	fd      int // -1 when closed
	slot    int // in umem.sockets
	filled  int // chunks given to receive into and not yet taken out of the RX ring
	sending int // chunks given to send and not yet taken out of the completion ring
	stats   Stats

	device string
	queue  int
	mode   Mode
	maps   [][]byte
	poller *Poller
}

// Open makes a socket on c.Device in the network namespace of the calling thread (lock the
// goroutine to its thread when that is not the process's own); afterwards it works from any
// thread. The first socket registers u's memory with the kernel; further ones, on other
// queues, devices or namespaces, share it, with a fill and completion ring of their own.
// It needs CAP_NET_RAW, and CAP_IPC_LOCK when the memory exceeds RLIMIT_MEMLOCK. Frames
// arrive once the FD is in an XSKMAP and Refill was called.
func Open(u *Umem, c Config) (*Socket, error) {
	if u.mem == nil {
		return nil, fmt.Errorf("xsk: open %s queue %d: the frame memory is closed", c.Device, c.Queue)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	s := &Socket{umem: u, fd: -1, device: c.Device, queue: c.Queue}
	s.poller = NewPoller(s)
	if err := s.open(&c); err != nil {
		s.unmap()
		return nil, err
	}
	return s, nil
}

// complete sets defaults and checks.
func (c *Config) complete() error {
	if c.Device == "" {
		return fmt.Errorf("xsk: open queue %d: no device named: set Config.Device", c.Queue)
	}
	if c.Queue < 0 {
		return fmt.Errorf("xsk: %s queue %d: %w: queues count from 0", c.Device, c.Queue, ErrQueue)
	}
	if c.Mode > ModeAuto {
		return fmt.Errorf("xsk: %s queue %d: %v: ask for copy, zero-copy or auto", c.Device, c.Queue, c.Mode)
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	for _, n := range []*int{&c.Fill, &c.Receive, &c.Transmit, &c.Completion} {
		if *n == 0 {
			*n = defaultRing
		}
		if *n < 1 || *n > maxRing || bits.OnesCount(uint(*n)) != 1 {
			return fmt.Errorf("xsk: %s queue %d: ring of %d entries: use a power of two up to %d", c.Device, c.Queue, *n, maxRing)
		}
	}
	return nil
}

func (s *Socket) open(c *Config) (err error) {
	index, err := interfaceIndex(c.Device)
	if err != nil {
		return err
	}
	if s.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return socketError(c.Device, err)
	}
	first := s.umem.open()
	if first == nil {
		if errno := registerUmem(s.fd, s.umem); errno != 0 {
			return s.umem.registerError(errno)
		}
	}
	if err := s.makeRings(c); err != nil {
		return err
	}
	s.widenSendBuffer(c)
	if err := s.bind(c, index, first); err != nil {
		return err
	}
	options, err := unix.GetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS)
	if err != nil {
		return fmt.Errorf("xsk: read the mode of %s queue %d: %w", c.Device, c.Queue, err)
	}
	if options&unix.XDP_OPTIONS_ZEROCOPY != 0 {
		s.mode = ModeZeroCopy
	}
	return s.umem.admit(s)
}

// makeRings sizes the four rings and maps them.
func (s *Socket) makeRings(c *Config) error {
	for _, r := range []struct{ option, entries int }{
		{unix.XDP_UMEM_FILL_RING, c.Fill}, {unix.XDP_UMEM_COMPLETION_RING, c.Completion},
		{unix.XDP_RX_RING, c.Receive}, {unix.XDP_TX_RING, c.Transmit},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, r.option, r.entries); err != nil {
			return fmt.Errorf("xsk: make a ring of %d entries for %s queue %d: %w", r.entries, c.Device, c.Queue, err)
		}
	}
	if err := s.mapRings(c); err != nil {
		return fmt.Errorf("xsk: map the rings of %s queue %d: %w", c.Device, c.Queue, err)
	}
	return nil
}

// widenSendBuffer lets the frames of a full TX ring be in flight at once in copy mode, where
// each costs an sk_buff that counts against the socket's send buffer. Without CAP_NET_ADMIN
// the system's limit holds, which costs EAGAINs (counted), not frames.
func (s *Socket) widenSendBuffer(c *Config) {
	const overhead = 1024 // of an sk_buff, generously
	n := min(c.Transmit*(int(s.umem.chunkSize)+overhead), 1<<30)
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, n) != nil {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, n)
	}
}

// bind binds to the queue, trying again while a predecessor's queue is being released.
func (s *Socket) bind(c *Config, index uint32, first *Socket) error {
	sa := &unix.SockaddrXDP{Ifindex: index, QueueID: uint32(c.Queue)}
	if first != nil {
		// The kernel takes mode and need-wakeup from the first socket and refuses
		// them here.
		sa.Flags, sa.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(first.fd)
	} else {
		sa.Flags = unix.XDP_USE_NEED_WAKEUP | map[Mode]uint16{ModeCopy: unix.XDP_COPY, ModeZeroCopy: unix.XDP_ZEROCOPY}[c.Mode]
	}
	deadline := time.Now().Add(c.Patience)
	for {
		err := unix.Bind(s.fd, sa)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || !time.Now().Before(deadline) {
			return s.bindError(err, first != nil, c)
		}
		time.Sleep(bindEvery)
	}
}

// FD returns the file descriptor, for an XSKMAP. -1 when closed.
func (s *Socket) FD() int { return s.fd }

// Device returns the name of the device when the socket was opened.
func (s *Socket) Device() string { return s.device }

// Queue returns the queue of the device.
func (s *Socket) Queue() int { return s.queue }

// Mode returns the mode in force: ModeCopy or ModeZeroCopy.
func (s *Socket) Mode() Mode { return s.mode }

// Umem returns the frame memory.
func (s *Socket) Umem() *Umem { return s.umem }

// Close ends the socket and gives its chunks back to the pool. Frames in its TX ring that
// the kernel has not taken are not sent; frames in its RX ring are lost. Chunks that the
// device may still touch (in zero-copy mode; or taken for sending and not completed) are
// withheld until the Umem is closed, and counted in the Census. Afterwards the methods of s
// move nothing and report ErrClosed. Closing twice does nothing. It takes some 20 ms: the
// kernel waits for packets under way.
func (s *Socket) Close() error {
	if s.fd < 0 {
		return nil
	}
	s.Complete()
	s.recallPending()
	err := s.unmap()
	s.retire()
	if err != nil {
		return fmt.Errorf("xsk: close %s queue %d: %w", s.device, s.queue, err)
	}
	return nil
}

// recallPending takes the frames back that the kernel never looked at.
func (s *Socket) recallPending() {
	if s.mode == ModeZeroCopy {
		return // the driver may be reading the ring now
	}
	n, from := s.tx.unconsumed(), at(tx, s.slot)
	for k := range n {
		if s.umem.reclaim(s.tx.entry(s.tx.cons, k).Addr, from) {
			s.sending--
		}
	}
}

// unmap ends the mappings and closes the descriptor. The mappings go first: each holds the
// socket, and with one left the queue would stay taken after the close.
func (s *Socket) unmap() error {
	s.fill, s.completion = addressRing{ring: deadRing()}, addressRing{ring: deadRing()}
	s.rx, s.tx = descriptorRing{ring: deadRing()}, descriptorRing{ring: deadRing()}
	var errs []error
	for _, m := range s.maps {
		errs = append(errs, unix.Munmap(m))
	}
	s.maps = nil
	if s.fd >= 0 {
		errs = append(errs, unix.Close(s.fd))
		s.fd = -1
	}
	return errors.Join(errs...)
}

// retire settles the chunks of a closed socket. Once close has returned, the kernel writes
// into no chunk any more in copy mode.
func (s *Socket) retire() {
	u := s.umem
	for i, w := range u.where {
		switch {
		case w == at(fill, s.slot) && s.mode == ModeCopy:
			u.reclaim(uint64(i)<<u.shift, w)
		case w == at(fill, s.slot) || w == at(tx, s.slot):
			u.where[i] = at(withheld, 0)
			u.withheld++
		}
	}
	s.filled, s.sending = 0, 0
	u.sockets[s.slot] = nil
}
