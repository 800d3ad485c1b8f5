package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/statedir"
	"lace-cni.io/lace/xdp"
)

// ErrInUse is wrapped by the error of a second fast path on one state directory, on one
// BPF file system or in one network namespace: two would tear down each other's programs
// and trunk.
var ErrInUse = errors.New("in use by another lace-fastpath")

// exitPatience is how long to wait for a lock: a process that was killed holds its locks
// until the kernel has taken its memory and sockets apart.
const exitPatience = 2 * time.Second

// locks are held until they are closed or the process ends, however it ends.
type locks []*os.File

func (l locks) Close() error {
	var errs []error
	for _, f := range l {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// lock takes everything of which one fast path alone may be the owner.
func lock(ctx context.Context, c *Config) (held locks, err error) {
	defer func() {
		if err != nil {
			held.Close()
		}
	}()
	for _, take := range []func(context.Context, *Config) (*os.File, error){lockState, lockNetwork, lockPins} {
		f, err := take(ctx, c)
		if err != nil {
			return held, err
		}
		if f != nil {
			held = append(held, f)
		}
	}
	return held, nil
}

// lockState makes the state directory if it is missing and takes its lock.
func lockState(ctx context.Context, c *Config) (*os.File, error) {
	if err := statedir.Make(c.StateDir); err != nil {
		return nil, err
	}
	path := filepath.Join(c.StateDir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the state directory: %w", err)
	}
	err = own(ctx, f)
	if errors.Is(err, ErrInUse) {
		err = fmt.Errorf("state directory %s is %w (%s): stop that one, or run this one on another node", c.StateDir, err, holder(f))
	} else if err == nil {
		err = sign(f)
	}
	return keep(f, err)
}

// lockNetwork takes the network namespace, which has room for one trunk.
func lockNetwork(ctx context.Context, _ *Config) (*os.File, error) {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("lock of the network namespace: %w", err)
	}
	err = own(ctx, f)
	if errors.Is(err, ErrInUse) {
		err = fmt.Errorf("the network namespace is %w, with another --state-dir: stop that one, a node has one fast path", err)
	}
	return keep(f, err)
}

// lockPins takes the directory for pins; nil when there is no BPF file system that could
// hold any.
func lockPins(ctx context.Context, c *Config) (*os.File, error) {
	if mounted(c.BPFFS) != nil {
		return nil, nil
	}
	f, err := xdp.OpenPins(c.BPFFS)
	if err != nil {
		return nil, fmt.Errorf("kernel programs: %w", err)
	}
	err = own(ctx, f)
	if errors.Is(err, ErrInUse) {
		err = fmt.Errorf("BPF file system %s is %w, in another network namespace: stop that one, or give this one a --bpffs of its own", c.BPFFS, err)
	}
	return keep(f, err)
}

// keep closes f when it could not be locked.
func keep(f *os.File, err error) (*os.File, error) {
	if err == nil {
		return f, nil
	}
	defer f.Close()
	if errors.Is(err, ErrInUse) {
		return nil, err
	}
	return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
}

// own locks f (flock(2)), waiting for a process that is ending. ErrInUse: it does not end.
func own(ctx context.Context, f *os.File) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(exitPatience); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case time.Now().After(deadline):
			return ErrInUse
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sign notes who holds the lock, for the message to the next one.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// holder says who wrote the lock file.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return "process " + pid
	}
	return "process unknown"
}
