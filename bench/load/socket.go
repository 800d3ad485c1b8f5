package load

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// socket opens a blocking socket in the namespace of the calling thread. With a patience
// neither reading nor writing blocks longer.
func socket(kind int, patience time.Duration) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if patience > 0 {
		if err := limit(fd, patience); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

func limit(fd int, patience time.Duration) error {
	t := unix.NsecToTimeval(patience.Nanoseconds())
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &t); err != nil {
			return fmt.Errorf("socket timeout: %w", err)
		}
	}
	return nil
}

func sockaddr(a netip.AddrPort) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}

// connected opens a socket and connects it.
func connected(kind int, to netip.AddrPort, patience time.Duration) (int, error) {
	fd, err := socket(kind, patience)
	if err != nil {
		return -1, err
	}
	if err := again(func() error { return unix.Connect(fd, sockaddr(to)) }); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("connect to %s: %w", to, err)
	}
	return fd, nil
}

// listening opens a server's socket.
func listening(kind int, at netip.AddrPort) (int, error) {
	fd, err := socket(kind, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, sockaddr(at))
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 1024)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on %s: %w", at, err)
	}
	return fd, nil
}

// again repeats a call that a signal interrupted: the Go runtime sends some.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func read(fd int, b []byte) (n int, err error) {
	err = again(func() error { n, err = unix.Read(fd, b); return err })
	return max(n, 0), err
}

// readAll fills b; an early end is an error.
func readAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := read(fd, b)
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.ECONNRESET
		}
		b = b[n:]
	}
	return nil
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := 0, error(nil)
		if err = again(func() error { n, err = unix.Write(fd, b); return err }); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
