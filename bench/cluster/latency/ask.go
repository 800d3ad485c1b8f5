package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/load"
)

const (
	// askEvery is how long after an answer the next question is asked.
	askEvery = time.Millisecond
	// answerWithin is how long an answer is waited for before the next question, a new flow as
	// every one.
	answerWithin = 20 * time.Millisecond
)

// await asks an address again and again, each time from a new socket, until whom it wants
// answers, and returns when that answer came. An empty name wants anybody.
func await(ctx context.Context, s *load.Space, to netip.AddrPort, name string) (at time.Time, err error) {
	err = s.Do(func() error {
		last := "nobody"
		for ctx.Err() == nil {
			who, err := ask(to)
			if err != nil {
				return fmt.Errorf("ask %s from %s: %w", to, s.Name(), err)
			}
			if who != "" && (name == "" || who == name) {
				at = time.Now()
				return nil
			}
			if who != "" {
				last = who
			}
			time.Sleep(askEvery)
		}
		return fmt.Errorf("%s at %s was waited for in vain, %s answered last: %w", name, to, last, context.Cause(ctx))
	})
	return at, err
}

// ask sends one datagram from a new socket and returns who answers; empty: nobody in time,
// or the question was refused.
func ask(to netip.AddrPort) (who string, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	within := unix.NsecToTimeval(int64(answerWithin))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &within); err != nil {
		return "", err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		return "", err
	}
	b := make([]byte, 64)
	if _, err := unix.Write(fd, b[:1]); err != nil {
		return "", nil // no way there yet
	}
	n, err := unix.Read(fd, b)
	if err != nil {
		return "", nil // refused, or not in time
	}
	return string(b[:n]), nil
}
