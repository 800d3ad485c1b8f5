package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse is wrapped by the error of a second agent on one state directory.
var ErrInUse = errors.New("in use")

// lock takes the lock file, which the kernel releases when the process ends, however it
// ends. who is the command that holds such locks.
func lock(path, who string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer f.Close()
		return nil, fmt.Errorf("%s: %w by another %s (%s): stop that one", path, ErrInUse, who, holder(f))
	}
	if err == nil {
		err = sign(f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// lockPlace takes what one fast path of a node holds wherever its state directory is: the
// network namespace and the directory of its pins. nil: the place does not exist.
func lockPlace(path, what string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s %s: %w by a lace-fastpath with another state directory: stop that one first", what, path, ErrInUse)
	}
	if err != nil {
		f.Close()
		return nil, err
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
