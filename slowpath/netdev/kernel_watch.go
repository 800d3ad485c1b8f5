package netdev

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	ownGroups = 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_NEIGH-1) |
		1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1) |
		1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)
	peerGroups = 1<<(unix.RTNLGRP_LINK-1) |
		1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1)
)

// Watch implements Stack. A second socket listens to the namespaces behind this
// one's veths, so that a pod's new address is noticed before its first packet; without
// CAP_NET_BROADCAST it is left out.
func (k *Kernel) Watch(ctx context.Context) (<-chan struct{}, error) {
	own, err := k.listen(ownGroups, false)
	if err != nil {
		return nil, fmt.Errorf("watching the network: %w", err)
	}
	files := []*os.File{own}
	peers, err := k.listen(peerGroups, true)
	switch {
	case err == nil:
		files = append(files, peers)
	case !errors.Is(err, unix.EPERM):
		own.Close()
		return nil, fmt.Errorf("watching the pods' namespaces: %w", err)
	}
	return follow(ctx, files), nil
}

// listen opens a routing socket in the Kernel's namespace and joins the groups.
func (k *Kernel) listen(groups uint32, everywhere bool) (*os.File, error) {
	var fd int
	err := within(k.space, func() (err error) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "rtnetlink notices")
	if everywhere {
		err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_LISTEN_ALL_NSID, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups})
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// within runs f on a thread that is in the namespace.
func within(space netns.NsHandle, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := netns.Get()
	if err != nil {
		return err
	}
	defer here.Close()
	if here.Equal(space) {
		return f()
	}
	if err := netns.Set(space); err != nil {
		return err
	}
	err = f()
	if back := netns.Set(here); back != nil {
		// The thread is in the wrong namespace for ever: it must not run anything else.
		runtime.LockOSThread()
		return errors.Join(err, back)
	}
	return err
}

// follow turns what arrives on the files into notices, until ctx ends or one fails.
func follow(ctx context.Context, files []*os.File) <-chan struct{} {
	ctx, stop := context.WithCancel(ctx)
	notices := make(chan struct{}, 1)
	var readers sync.WaitGroup
	for _, f := range files {
		readers.Go(func() {
			defer stop()
			receive(f, notices)
		})
	}
	go func() {
		defer stop()
		<-ctx.Done()
		for _, f := range files {
			f.Close()
		}
		readers.Wait()
		close(notices)
	}()
	return notices
}

// receive reads until the file is closed. Only the beginning of each datagram is
// looked at: what changed is read anew by whoever was told.
func receive(f *os.File, notices chan<- struct{}) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	var head [32]byte
	for {
		var n int
		var got error
		err := conn.Read(func(fd uintptr) bool {
			n, _, got = unix.Recvfrom(int(fd), head[:], 0)
			return got != unix.EAGAIN
		})
		switch {
		case err != nil:
			return
		case got == unix.EINTR:
			continue
		case got != nil && got != unix.ENOBUFS: // ENOBUFS: notices were lost, so this is one
			return
		case got == nil && !matters(head[:n]):
			continue
		}
		select {
		case notices <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// matters leaves out the steps of neighbour discovery that change neither an
// address nor its MAC: they are most of what a busy node's kernel says.
func matters(head []byte) bool {
	const stateEnd = unix.SizeofNlMsghdr + 10 // struct ndmsg, ndm_state
	if len(head) < stateEnd {
		return true
	}
	if binary.NativeEndian.Uint16(head[4:]) != unix.RTM_NEWNEIGH {
		return true
	}
	state := binary.NativeEndian.Uint16(head[stateEnd-2:])
	return state&(unix.NUD_INCOMPLETE|unix.NUD_DELAY|unix.NUD_PROBE) == 0
}
