package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// interfaceIndex finds the index of a device in the calling thread's network namespace.
func interfaceIndex(device string) (uint32, error) {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return 0, fmt.Errorf("xsk: device name %q: %w: a name has 1 to 15 bytes", device, err)
	}
	// AF_UNIX: any socket answers this ioctl, and this family is always there.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("xsk: look up device %s: %w", device, err)
	}
	defer unix.Close(fd)
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request); err != nil {
		return 0, fmt.Errorf("xsk: look up device %s: %w: check its name and the network namespace of the calling thread", device, err)
	}
	return request.Uint32(), nil
}

func socketError(device string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("xsk: open an AF_XDP socket for %s: %w: give the process CAP_NET_RAW", device, err)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("xsk: open an AF_XDP socket for %s: %w: the kernel needs CONFIG_XDP_SOCKETS", device, err)
	}
	return fmt.Errorf("xsk: open an AF_XDP socket for %s: %w", device, err)
}

// registerError says why the kernel would not pin the memory.
func (u *Umem) registerError(errno unix.Errno) error {
	if errno != unix.ENOBUFS {
		return fmt.Errorf("xsk: register %d bytes of frame memory: %w", u.size, errno)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return fmt.Errorf("xsk: register %d bytes of frame memory: %w: give the process CAP_IPC_LOCK", u.size, errno)
	}
	return fmt.Errorf("xsk: register %d bytes of frame memory: %w: the limit for locked memory is %d bytes; give the process CAP_IPC_LOCK or raise RLIMIT_MEMLOCK",
		u.size, errno, limit.Cur)
}
