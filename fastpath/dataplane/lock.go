package dataplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse is wrapped by the error of a second fast path on one state directory.
var ErrInUse = errors.New("state directory is in use by another lace-fastpath")

// lock makes the state directory if it is missing and takes its lock, which the kernel
// releases when the process ends, however it ends. Closing the file releases it earlier.
func lock(stateDir string) (*os.File, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	// It holds a socket and files that steer the node's traffic: nobody else's business.
	if err := os.Chmod(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := filepath.Join(stateDir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the state directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w (%s): stop that one, or give this one a --state-dir and a --bpffs of its own",
				stateDir, ErrInUse, holder(f))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := sign(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
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
