package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Errors to test for with errors.Is; the error itself names device, queue and remedy.
var (
	// ErrFrame: a frame that its giver does not hold, that lies outside the memory, or
	// whose length cannot be sent. A fault of the caller.
	ErrFrame = errors.New("frame refused")
	// ErrDown: the device is set down. Frames stay where they are; try again when it is up.
	ErrDown = errors.New("device is down")
	// ErrGone: the device was removed or the socket unbound. Close the socket and open a
	// new one.
	ErrGone = errors.New("device is gone")
	// ErrClosed: the socket was closed by Close.
	ErrClosed = errors.New("socket is closed")
	// ErrBusy: another socket holds the queue.
	ErrBusy = errors.New("queue is taken")
	// ErrQueue: the device has no such queue.
	ErrQueue = errors.New("no such queue")
	// ErrMode: the device does not offer the mode that was asked for.
	ErrMode = errors.New("mode not offered")
)

func frameError(verb string, u *Umem, f Frame) error {
	i, ok := u.chunk(f)
	if !ok {
		return fmt.Errorf("xsk: %s frame at %d, %d bytes: %w: outside the %d bytes of memory or across the end of a %d-byte chunk",
			verb, f.Addr, f.Len, ErrFrame, u.size, u.chunkSize)
	}
	if w := u.where[i]; w.place() != held {
		return fmt.Errorf("xsk: %s frame at %d: %w: its place is %q, only held frames can be given away", verb, f.Addr, ErrFrame, w.place())
	}
	return fmt.Errorf("xsk: %s frame at %d, %d bytes: %w: an Ethernet frame has at least %d", verb, f.Addr, f.Len, ErrFrame, MinFrame)
}

// fault wraps what a system call on the open socket returned.
func (s *Socket) fault(verb string, errno unix.Errno) error {
	switch errno {
	case unix.ENETDOWN:
		return fmt.Errorf("xsk: %s on %s queue %d: %w (%w): set the link up", verb, s.device, s.queue, ErrDown, errno)
	case unix.ENXIO, unix.ENODEV:
		return fmt.Errorf("xsk: %s on %s queue %d: %w (%w): close the socket and open it again when the device is back", verb, s.device, s.queue, ErrGone, errno)
	}
	return fmt.Errorf("xsk: %s on %s queue %d: %w", verb, s.device, s.queue, errno)
}

func (s *Socket) closed(verb string) error {
	return fmt.Errorf("xsk: %s on %s queue %d: %w", verb, s.device, s.queue, ErrClosed)
}

// bindError says what a refused bind means and what to do.
func (s *Socket) bindError(err error, shared bool, c *Config) error {
	where := fmt.Sprintf("xsk: bind to %s queue %d", c.Device, c.Queue)
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s: %w (%w) for %v: another AF_XDP socket holds it; stop its process, or let it unmap its rings and close", where, ErrBusy, err, c.Patience)
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("%s: %w (%w): the driver has no %v mode; ask for %v", where, ErrMode, err, c.Mode, ModeCopy)
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("%s: %w (%w): set the link up first", where, ErrDown, err)
	case errors.Is(err, unix.EINVAL) && shared:
		return fmt.Errorf("%s: %w (%w): the device has fewer queues, or this Umem has a socket there already", where, ErrQueue, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s: %w (%w): compare `ethtool -l %s`", where, ErrQueue, err, c.Device)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w: give the process CAP_NET_RAW", where, err)
	}
	return fmt.Errorf("%s: %w", where, err)
}
