package load

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/link"

	"lace-cni.io/lace/bench/load/bpf"
)

// Floor counts and drops everything that comes in on a device, in XDP, before the kernel has
// made a packet buffer: what is left is the cost of making frames.
type Floor struct {
	objects bpf.LoadObjects
	link    link.Link
}

// OpenFloor attaches the program.
func OpenFloor(s *Space, device string) (*Floor, error) {
	index, err := s.Index(device)
	if err != nil {
		return nil, err
	}
	f := new(Floor)
	if err := bpf.LoadLoadObjects(&f.objects, nil); err != nil {
		return nil, fmt.Errorf("load the floor's program: %w", err)
	}
	err = s.Do(func() (err error) {
		f.link, err = link.AttachXDP(link.XDPOptions{Program: f.objects.Swallow, Interface: index, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach XDP to %s of %s: %w", device, s.name, err), f.objects.Close())
	}
	return f, nil
}

// Taken is the number of packets that came.
func (f *Floor) Taken() (uint64, error) { return sum(f.objects.Taken) }

// Close detaches the program.
func (f *Floor) Close() error { return errors.Join(f.link.Close(), f.objects.Close()) }
