package xsk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Transmit puts frames that the owner holds into the TX ring and returns how many were
// taken, which belong to the kernel from then on; the others stay with the owner. Fewer
// than len(batch) means that the ring is full: Kick and Complete, then give the rest again.
// The frames may come from any socket of the same Umem.
//
// It stops with ErrFrame at a frame that the owner does not hold, that lies outside the
// memory or its chunk, or that is shorter than MinFrame; those before it are taken. Such a
// frame never reaches the ring: the kernel would skip it and never give its chunk back.
//
// The frames leave when Kick is called, or Wait.
func (s *Socket) Transmit(batch []Frame) (int, error) {
	n := s.tx.room(len(batch))
	to := at(tx, s.slot)
	for k := range n {
		if !s.umem.surrender(batch[k], to) {
			s.taken(k)
			s.stats.Refused++
			return k, frameError("transmit", s.umem, batch[k])
		}
		*s.tx.entry(s.tx.prod, k) = unix.XDPDesc{Addr: batch[k].Addr, Len: batch[k].Len}
	}
	s.taken(n)
	return n, nil
}

func (s *Socket) taken(n int) {
	s.tx.publish(n)
	s.umem.held -= n
	s.sending += n
	s.stats.Transmitted += uint64(n)
}

// Pending returns how many transmitted frames the kernel has not yet taken out of the ring.
func (s *Socket) Pending() int { return s.tx.unconsumed() }

// Kick makes the kernel send what is in the TX ring, and collects completions on the way.
// Nothing is called when nothing is pending or the driver polls by itself. In copy mode it
// calls until the ring is empty. What the kernel refuses for the moment (no memory, a full
// device queue) stays in the ring for the next Kick or Wait. ErrDown, ErrGone and ErrQueue
// say that the device will not take frames.
func (s *Socket) Kick() error {
	if s.fd < 0 {
		return s.closed("send")
	}
	before := s.Pending()
	if before == 0 || !s.tx.needsWakeup() {
		s.stats.KicksSuppressed++
		return nil
	}
	for {
		errno := sendNothing(s.fd)
		s.stats.Kicks++
		left, completed := s.Pending(), s.Complete()
		if err := s.sendResult(errno); err != nil {
			return err
		}
		if left == 0 || s.mode == ModeZeroCopy {
			return nil
		}
		// Completions count as progress: each makes room for the next call, and a frame
		// that the device dropped shows as completed before it shows as taken.
		if left == before && completed == 0 {
			if errno == 0 {
				return s.deaf(left)
			}
			return nil
		}
		before = left
	}
}

// sendResult counts what the call to send returned. An error is one that will stay.
func (s *Socket) sendResult(errno unix.Errno) error {
	switch errno {
	case 0, unix.EINTR:
	case unix.EAGAIN:
		s.stats.Again++
	case unix.EBUSY:
		s.stats.DeviceDrops++
	case unix.ENOBUFS, unix.ENOMEM:
		s.stats.NoMemory++
	default:
		return s.fault("send", errno)
	}
	return nil
}

// deaf is the error of a device that accepts the call and takes nothing: the kernel's
// answer for a queue that has a receive side only.
func (s *Socket) deaf(left int) error {
	return fmt.Errorf("xsk: send on %s queue %d: %w: the device takes none of %d frames and has fewer transmit than receive queues; give it as many (numtxqueues)",
		s.device, s.queue, ErrQueue, left)
}
