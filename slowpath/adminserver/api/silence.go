package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// haltedAfter is when an agent that has not answered is looked at: one that is halted is
	// not waited for.
	haltedAfter = 2 * time.Second
	haltedEvery = 500 * time.Millisecond
	// silentFor is how long a client believes that an agent which gave no answer gives none:
	// a command that asks for several things waits once.
	silentFor = time.Second
)

// SilentError says that an agent is there and gave no answer.
type SilentError struct{ message string }

func (e *SilentError) Error() string { return e.message }

// Unwrap lets callers ask whether it was a matter of time.
func (e *SilentError) Unwrap() error { return context.DeadlineExceeded }

// errHalted ends a request whose agent is halted.
var errHalted = errors.New("halted")

// peer is the process that listens at the socket; 0: not known yet, or not visible from here.
type peer struct {
	sync.Mutex
	pid    int
	silent error // what the last request got, when it waited in vain
	since  time.Time
}

// met notes who listens at the other end.
func (p *peer) met(c net.Conn) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			p.Lock()
			defer p.Unlock()
			p.pid = int(cred.Pid)
		}
	})
}

func (p *peer) process() int {
	p.Lock()
	defer p.Unlock()
	return p.pid
}

// lately is the silence that was met just now; nil: there was none.
func (p *peer) lately() error {
	p.Lock()
	defer p.Unlock()
	if time.Since(p.since) > silentFor {
		return nil
	}
	return p.silent
}

func (p *peer) remember(silent error) {
	p.Lock()
	defer p.Unlock()
	p.silent, p.since = silent, time.Now()
}

// watch gives a context that ends early when the agent turns out to be halted.
func (p *peer) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		look := time.NewTimer(haltedAfter)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if halted(p.process()) {
				cancel(errHalted)
				return
			}
			look.Reset(haltedEvery)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// silence is the error of a request that got no answer; nil: it failed for another reason.
func (p *peer) silence(ctx context.Context, socket string, waited time.Duration) error {
	if !errors.Is(context.Cause(ctx), errHalted) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	pid := p.process()
	switch {
	case pid == 0:
		return &SilentError{fmt.Sprintf("the agent at %s does not answer (waited %s): look into the log of lace-agent, and restart it", socket, waited.Round(100*time.Millisecond))}
	case halted(pid):
		return &SilentError{fmt.Sprintf("the agent at %s (process %d) does not answer, for it is halted: let it go on (kill -CONT %d), or restart it", socket, pid, pid)}
	}
	return &SilentError{fmt.Sprintf("the agent at %s (process %d) does not answer (waited %s): look into its log, and restart it", socket, pid, waited.Round(100*time.Millisecond))}
}

// halted reports whether a process was stopped by a signal or a debugger: state T or t of
// proc_pid_stat(5), behind the name, which may hold anything.
func halted(pid int) bool {
	if pid == 0 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, ok := bytes.Cut(b[max(bytes.LastIndexByte(b, ')'), 0):], []byte(" "))
	return ok && len(state) > 0 && (state[0] == 'T' || state[0] == 't')
}
