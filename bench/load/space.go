package load

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Space is a network namespace. Methods may be called from any goroutine.
type Space struct {
	name   string
	handle netns.NsHandle
	links  *netlink.Handle
}

// OpenSpace opens the network namespace of a process. The name is for messages.
func OpenSpace(name string, pid int) (*Space, error) {
	h, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, fmt.Errorf("network namespace of %s (process %d): %w", name, pid, err)
	}
	links, err := netlink.NewHandleAt(h)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("netlink in %s: %w", name, err)
	}
	return &Space{name: name, handle: h, links: links}, nil
}

// Close lets go of the namespace.
func (s *Space) Close() error {
	s.links.Close()
	return s.handle.Close()
}

// Name says whose namespace it is.
func (s *Space) Name() string { return s.name }

// Links speaks netlink inside the namespace.
func (s *Space) Links() *netlink.Handle { return s.links }

// Do runs f on a thread inside the namespace and returns its error. The thread ends
// afterwards: f may pin it and change its priority. Goroutines that f starts are not inside.
func (s *Space) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if err := netns.Set(s.handle); err != nil {
			done <- fmt.Errorf("enter the network namespace of %s: %w", s.name, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Index is the interface index of a device.
func (s *Space) Index(device string) (int, error) {
	l, err := s.links.LinkByName(device)
	if err != nil {
		return 0, fmt.Errorf("device %s of %s: %w", device, s.name, err)
	}
	return l.Attrs().Index, nil
}

// MAC is the address of a device.
func (s *Space) MAC(device string) (mac [6]byte, err error) {
	l, err := s.links.LinkByName(device)
	if err != nil {
		return mac, fmt.Errorf("device %s of %s: %w", device, s.name, err)
	}
	if n := copy(mac[:], l.Attrs().HardwareAddr); n != 6 {
		return mac, fmt.Errorf("device %s of %s has no Ethernet address", device, s.name)
	}
	return mac, nil
}
