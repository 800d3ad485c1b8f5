package load

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Exchanged are attempts that were answered, and those that were not.
type Exchanged struct {
	Times  []time.Duration // of those that were answered, in no order
	Failed int
	First  error // of the failed ones
	Took   time.Duration
}

// Rate is answered attempts per second.
func (e Exchanged) Rate() float64 { return float64(len(e.Times)) / e.Took.Seconds() }

const (
	patience    = 500 * time.Millisecond
	messageSize = 64
)

// attempt is one exchange; it returns an error when it had no answer in time.
type attempt func(b []byte) error

// Connections connects, sends 64 bytes, waits for the echo and closes, n clients at a time.
func Connections(ctx context.Context, s *Space, to netip.AddrPort, n int, d time.Duration) (Exchanged, error) {
	return exchange(ctx, s, n, d, func(b []byte) error {
		fd, err := connected(unix.SOCK_STREAM, to, patience)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := writeAll(fd, b); err != nil {
			return err
		}
		return readAll(fd, b)
	})
}

// FirstPackets sends one datagram from a new socket and waits for the echo: each is the
// first packet of its flow.
func FirstPackets(ctx context.Context, s *Space, to netip.AddrPort, d time.Duration) (Exchanged, error) {
	return exchange(ctx, s, 1, d, func(b []byte) error {
		fd, err := connected(unix.SOCK_DGRAM, to, patience)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return ask(fd, b)
	})
}

// RoundTrips sends datagrams on one flow, each after the answer to the one before.
func RoundTrips(ctx context.Context, s *Space, to netip.AddrPort, d time.Duration) (Exchanged, error) {
	fd := -1
	defer func() {
		if fd >= 0 {
			unix.Close(fd)
		}
	}()
	return exchange(ctx, s, 1, d, func(b []byte) (err error) {
		if fd < 0 {
			if fd, err = connected(unix.SOCK_DGRAM, to, patience); err != nil {
				return err
			}
		}
		return ask(fd, b)
	})
}

func ask(fd int, b []byte) error {
	if _, err := unix.Write(fd, b[:payloadDatagram]); err != nil {
		return err
	}
	_, err := read(fd, b)
	return err
}

// exchange makes attempts on n threads inside the namespace until the time is over. The end
// of ctx ends it with an error, after an attempt that may wait for its answer.
func exchange(ctx context.Context, s *Space, n int, d time.Duration, try attempt) (Exchanged, error) {
	var all sync.WaitGroup
	each := make([]Exchanged, n)
	errs := make([]error, n)
	start := time.Now()
	for i := range n {
		all.Go(func() {
			errs[i] = s.Do(func() error { each[i].repeat(ctx, start.Add(d), try); return nil })
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return Exchanged{}, context.Cause(ctx)
	}
	out := Exchanged{Took: time.Since(start)}
	for i := range each {
		if errs[i] != nil {
			return out, errs[i]
		}
		out.Times = append(out.Times, each[i].Times...)
		out.Failed += each[i].Failed
		if out.First == nil {
			out.First = each[i].First
		}
	}
	if len(out.Times)+out.Failed == 0 {
		return out, fmt.Errorf("%s was over before an attempt could be made", d)
	}
	if len(out.Times) == 0 {
		return out, fmt.Errorf("none of %d attempts was answered, the first for: %w", out.Failed, out.First)
	}
	return out, nil
}

func (e *Exchanged) repeat(ctx context.Context, until time.Time, try attempt) {
	b := make([]byte, messageSize)
	for now := time.Now(); now.Before(until) && ctx.Err() == nil; {
		now = e.once(now, b, try)
	}
}

// once makes an attempt that begins now, and returns when it ended.
func (e *Exchanged) once(now time.Time, b []byte, try attempt) time.Time {
	err := try(b)
	end := time.Now()
	if err == nil {
		e.Times = append(e.Times, end.Sub(now))
	} else {
		e.Failed++
		if e.First == nil {
			e.First = err
		}
	}
	return end
}
