package cluster

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netns"
)

// inside runs f in the network namespace of a process. What f makes stays there: a socket,
// a program that it starts.
func inside(pid int, f func() error) error {
	runtime.LockOSThread() // and unlocked only where the thread came back
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	there, err := netns.GetFromPid(pid)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer there.Close()
	if err := netns.Set(there); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if back := netns.Set(home); back != nil {
		return back // the thread ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// dialIn makes a connection in the network namespace of a process.
func dialIn(ctx context.Context, pid int, network, addr string) (conn net.Conn, err error) {
	err = inside(pid, func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// listenIn listens in the network namespace of a process.
func listenIn(pid int, network, addr string) (l net.Listener, err error) {
	err = inside(pid, func() (err error) {
		l, err = net.Listen(network, addr)
		return err
	})
	return l, err
}

// runIn runs a command in the network namespace of a process, and returns what it says.
func runIn(ctx context.Context, pid int, name string, args ...string) (says string, err error) {
	err = inside(pid, func() error {
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if says = string(out); err != nil {
			return fmt.Errorf("%s %q: %w: %s", filepath.Base(name), args, err, out)
		}
		return nil
	})
	return says, err
}
