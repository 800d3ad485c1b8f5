package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Streamed is what TCP streams carried, and what it took.
type Streamed struct {
	Bytes       uint64 // acknowledged within the measured time
	Took        time.Duration
	Retransmits uint64 // segments, tcpi_total_retrans
	Reordered   uint64 // events that the sender noticed, tcpi_reord_seen
	Duplicates  uint64 // segments that the receiver had already, tcpi_dsack_dups
}

// Rate is in bits per second.
func (s Streamed) Rate() float64 { return 8 * float64(s.Bytes) / s.Took.Seconds() }

// PerGiB is a count per GiB carried.
func (s Streamed) PerGiB(count uint64) float64 {
	if s.Bytes == 0 {
		return 0
	}
	return float64(count) / (float64(s.Bytes) / (1 << 30))
}

const writeSize = 128 << 10

// Stream writes as fast as TCP takes it on n connections, to a port that throws it away.
// What comes before the warm-up is over is not counted. The end of ctx ends it with an error.
func Stream(ctx context.Context, s *Space, to netip.AddrPort, n int, warm, measured time.Duration) (Streamed, error) {
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	err := s.Do(func() error {
		for range n {
			fd, err := connected(unix.SOCK_STREAM, to, 2*time.Second)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
		}
		return nil
	})
	if err != nil {
		return Streamed{}, err
	}
	return stream(ctx, fds, warm, measured)
}

func stream(ctx context.Context, fds []int, warm, measured time.Duration) (out Streamed, err error) {
	var writers sync.WaitGroup
	failed := make([]error, len(fds))
	for i, fd := range fds {
		writers.Go(func() { failed[i] = write(fd) })
	}
	pause(ctx, warm)
	before, start := look(fds), time.Now()
	pause(ctx, measured)
	after := look(fds)
	out = after.since(before)
	out.Took = time.Since(start)
	for _, fd := range fds {
		unix.Shutdown(fd, unix.SHUT_RDWR)
	}
	writers.Wait()
	if err := errors.Join(failed...); err != nil {
		return out, err
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if out.Bytes == 0 {
		return out, fmt.Errorf("nothing was acknowledged in %s", measured)
	}
	return out, nil
}

// pause sleeps, but not beyond the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// write ends when the socket is shut down.
func write(fd int) error {
	b := make([]byte, writeSize)
	for {
		switch err := writeAll(fd, b); err {
		case nil:
		case unix.EPIPE, unix.ECONNRESET:
			return nil
		default:
			return fmt.Errorf("write to a stream: %w", err)
		}
	}
}

// look sums TCP_INFO of connections.
func look(fds []int) (out Streamed) {
	for _, fd := range fds {
		i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			continue
		}
		out.Bytes += i.Bytes_acked
		out.Retransmits += uint64(i.Total_retrans)
		out.Reordered += uint64(i.Reord_seen)
		out.Duplicates += uint64(i.Dsack_dups)
	}
	return out
}

func (s Streamed) since(b Streamed) Streamed {
	return Streamed{
		Bytes: s.Bytes - b.Bytes, Retransmits: s.Retransmits - b.Retransmits,
		Reordered: s.Reordered - b.Reordered, Duplicates: s.Duplicates - b.Duplicates,
	}
}
