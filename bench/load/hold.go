package load

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// hold keeps an XDP program in the kernel's dispatcher. Each test run of a program that is
// not there patches it in and out again, which waits for two grace periods of RCU: as much
// time as thousands of frames take, and a wait without an end while threads with real-time
// priority keep RCU's own from running. So the program is attached where no packet comes:
// to a veth of an empty namespace. Not to its loopback device: XDP on a device whose driver
// has none puts a check into the way of every packet of the machine.
type hold struct {
	space netns.NsHandle
	link  link.Link
}

func holdDispatcher(p *ebpf.Program) (*hold, error) {
	h := &hold{space: netns.None()}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		done <- h.attach(p)
	}()
	if err := <-done; err != nil {
		return nil, errors.Join(fmt.Errorf("hold a generator's program: %w", err), h.close())
	}
	return h, nil
}

func (h *hold) attach(p *ebpf.Program) (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if h.space, err = netns.Get(); err != nil {
		return err
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "hold0"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "hold1"}); err != nil {
		return err
	}
	l, err := netlink.LinkByName(attributes.Name)
	if err != nil {
		return err
	}
	h.link, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: l.Attrs().Index, Flags: link.XDPDriverMode})
	return err
}

func (h *hold) close() error {
	var errs []error
	if h.link != nil {
		errs = append(errs, h.link.Close())
	}
	if h.space.IsOpen() {
		errs = append(errs, h.space.Close())
	}
	return errors.Join(errs...)
}
