package xsk

import (
	"time"

	"golang.org/x/sys/unix"
)

// flushEvery is how soon Wait tries again to send frames that the kernel refused for the
// moment: nothing would wake it up when the reason goes away.
const flushEvery = time.Millisecond

// Poller waits for frames on several sockets of one owner, which may be of different
// devices and network namespaces. Not safe for concurrent use.
type Poller struct {
	sockets []*Socket
	fds     []unix.PollFd
	spec    unix.Timespec // here, so that no call allocates
}

// NewPoller makes a Poller for sockets of one Umem or of several that one goroutine owns.
func NewPoller(sockets ...*Socket) *Poller {
	return &Poller{sockets: sockets, fds: make([]unix.PollFd, len(sockets))}
}

// Wait blocks until a socket has received frames or timeout has passed, and returns how
// many sockets have some. Before it blocks it sends what is still pending, and goes on
// trying while it waits, so that no frame stays behind because its Kick was forgotten or
// refused. A timeout of 0 or less looks once without blocking.
//
// It costs a system call even when frames are there: call it after Receive found none.
//
// A device that is down or gone does not wake a waiter: it is noticed before blocking when
// frames are pending, else when the timeout passes, as ErrDown or ErrGone; use timeouts of
// 100 ms or so.
func (p *Poller) Wait(timeout time.Duration) (int, error) {
	deadline := time.Now().Add(timeout)
	for {
		stuck, err := p.flush()
		if err != nil {
			return 0, err
		}
		left := max(time.Until(deadline), 0)
		slice := left
		if stuck {
			slice = min(left, flushEvery)
		}
		ready, err := p.poll(slice)
		if ready > 0 || err != nil {
			return ready, err
		}
		if slice == left {
			return 0, p.probe(timeout)
		}
	}
}

// Wait is Poller.Wait for one socket: it reports whether frames can be received.
func (s *Socket) Wait(timeout time.Duration) (bool, error) {
	n, err := s.poller.Wait(timeout)
	return n > 0, err
}

// flush kicks the sockets with pending frames and reports whether some are still pending.
func (p *Poller) flush() (stuck bool, err error) {
	for i, s := range p.sockets {
		if s.fd < 0 {
			return false, s.closed("wait")
		}
		p.fds[i] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
		if s.Pending() == 0 {
			continue
		}
		if err := s.Kick(); err != nil {
			return false, err
		}
		// A driver with zero-copy sends by itself once it was woken.
		stuck = stuck || s.mode == ModeCopy && s.Pending() > 0
	}
	return stuck, nil
}

func (p *Poller) poll(d time.Duration) (int, error) {
	p.spec = unix.NsecToTimespec(int64(d))
	n, err := unix.Ppoll(p.fds, &p.spec, nil)
	if err != nil && err != unix.EINTR {
		return 0, p.sockets[0].fault("poll", err.(unix.Errno))
	}
	ready := 0
	for i, s := range p.sockets {
		s.stats.Polls++
		re := p.fds[i].Revents
		if n <= 0 || re == 0 {
			s.stats.Timeouts++
			continue
		}
		if re&(unix.POLLNVAL|unix.POLLERR|unix.POLLHUP) != 0 {
			return ready, s.fault("poll", unix.ENXIO)
		}
		ready++
	}
	return ready, nil
}

// probe asks each socket for its health: poll reports none. The same call wakes a driver
// that sleeps until it is told of chunks to receive into.
func (p *Poller) probe(timeout time.Duration) error {
	if timeout <= 0 {
		return nil
	}
	for _, s := range p.sockets {
		switch errno := receiveNothing(s.fd); errno {
		case 0, unix.EAGAIN, unix.EBUSY, unix.EINTR, unix.ENOBUFS:
		default:
			return s.fault("wait", errno)
		}
	}
	return nil
}
