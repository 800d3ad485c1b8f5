package netdev

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Kernel is the Stack of a real network namespace: the one of the thread that
// opened it, whatever thread calls it later.
type Kernel struct {
	space   netns.NsHandle
	routing *netlink.Handle
	strict  *nl.SocketHandle // obeys filters and target namespaces
	ioctl   int              // datagram socket that carries ioctls into the namespace
}

// Open binds a Kernel to the calling thread's network namespace. It needs
// CAP_NET_ADMIN to write routes and to look at the other end of pods' devices, and
// CAP_NET_BROADCAST to be told at once when addresses change there.
func Open() (*Kernel, error) {
	k := &Kernel{space: netns.None(), ioctl: -1}
	if err := k.open(); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

func (k *Kernel) open() (err error) {
	if k.space, err = netns.Get(); err != nil {
		return fmt.Errorf("network namespace of this thread: %w", err)
	}
	if k.routing, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("routing netlink socket: %w", err)
	}
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("routing netlink socket: %w", err)
	}
	k.strict = &nl.SocketHandle{Socket: s}
	if err := unix.SetsockoptInt(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1); err != nil {
		return fmt.Errorf("strict netlink dumps (Linux 4.20 or newer): %w", err)
	}
	if k.ioctl, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("socket for ioctls: %w", err)
	}
	return nil
}

// Close releases the sockets. Watches end with their contexts.
func (k *Kernel) Close() {
	if k.routing != nil {
		k.routing.Close()
	}
	if k.strict != nil {
		k.strict.Socket.Close()
	}
	if k.ioctl >= 0 {
		_ = unix.Close(k.ioctl)
	}
	if k.space.IsOpen() {
		_ = k.space.Close()
	}
}

// dumpTries bounds how often a dump that was interrupted by a change is begun
// again. The kernel then says so and what it gave is incomplete (NLM_F_DUMP_INTR).
const dumpTries = 16

func dump[T any](what string, list func() ([]T, error)) ([]T, error) {
	var got []T
	var err error
	for range dumpTries {
		got, err = list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", what, err)
	}
	return got, nil
}

// translate gives kernel errors the package's names.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%w (%w)", ErrNotFound, err)
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("%w (%w)", ErrDown, err)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return fmt.Errorf("%w (%w)", ErrInvalid, err)
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w (%w)", ErrUnsupported, err)
	}
	return err
}
