package xdp

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace that a file keeps alive.
type namespace struct {
	path string
	file *os.File
}

// openNamespace opens the namespace mounted at path, or makes one and mounts it there.
// The mount, and with it the namespace, outlives the process; made tells the two apart.
func openNamespace(path string) (n *namespace, made bool, err error) {
	if n, err = enterable(path); err == nil {
		return n, false, nil
	}
	if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errNoNamespace) {
		return nil, false, err
	}
	if err := makeNamespace(path); err != nil {
		return nil, false, fmt.Errorf("private network namespace %s: %w", path, err)
	}
	n, err = enterable(path)
	return n, true, err
}

var errNoNamespace = errors.New("not a network namespace")

// enterable opens path if a network namespace other than our own is mounted there.
func enterable(path string) (*namespace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := isForeignNetwork(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &namespace{path, f}, nil
}

func isForeignNetwork(f *os.File) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return err
	}
	if fs.Type != unix.NSFS_MAGIC {
		return errNoNamespace
	}
	if kind, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		return errNoNamespace
	}
	var its, ours unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &its); err != nil {
		return err
	}
	if err := unix.Stat("/proc/thread-self/ns/net", &ours); err != nil {
		return err
	}
	if its.Ino == ours.Ino && its.Dev == ours.Dev {
		return fmt.Errorf("holds the node's own network namespace; the trunk needs one of its own: unmount it")
	}
	return nil
}

// makeNamespace mounts a new, silent network namespace at path.
func makeNamespace(path string) error {
	if err := dismount(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		done <- mountNew(path)
	}()
	return <-done
}

func mountNew(path string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making it: %w", err)
	}
	// Nothing but Lace's frames may come out of lace1.
	if err := sysctl("net/ipv6/conf/all/disable_ipv6", "1"); err != nil {
		return err
	}
	if err := sysctl("net/ipv6/conf/default/disable_ipv6", "1"); err != nil {
		return err
	}
	if err := unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting it: %w", err)
	}
	return nil
}

// dismount removes path and whatever is mounted there.
func dismount(path string) error {
	for {
		err := unix.Unmount(path, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			break
		}
		if err != nil {
			return fmt.Errorf("unmounting %s: %w", path, err)
		}
	}
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// do runs f on a thread of its own inside the namespace.
func (n *namespace) do(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return
		}
		defer home.Close()
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("entering network namespace %s: %w", n.path, err)
			return
		}
		err = f()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread() // else the thread ends with the goroutine
		}
		done <- err
	}()
	return <-done
}

func (n *namespace) close() error { return n.file.Close() }
