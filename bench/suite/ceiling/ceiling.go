// Package ceiling is the fastest way of a service packet that the kernel has: address
// translation and redirect in XDP, on the devices of a node. It shows what is left to gain.
//
// It owns the program's maps and where it is attached. It must never be taken for a service
// proxy: it knows UDP over IPv4 between pods of one node and nothing else. TCP between pods
// does not work over it, since nobody completes partial checksums.
package ceiling

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf/link"

	"lace-cni.io/lace/bench/load"
	"lace-cni.io/lace/bench/suite/ceiling/bpf"
)

// Pod is where a packet can be sent.
type Pod struct {
	Device string // the node's end of its link
	MAC    [6]byte
	Addr   netip.Addr
}

// Service is one frontend and its backends, indexes into the pods of Open.
type Service struct {
	Frontend netip.AddrPort
	Target   uint16
	Backends []int
}

// Ceiling is attached until Close.
type Ceiling struct {
	objects bpf.NatObjects
	links   []link.Link
}

// Records of bpf/nat.c.
type (
	frontend struct {
		Addr [4]byte
		Port [2]byte
		_    uint16
	}
	run struct{ First, Count uint32 }
	hop struct {
		Addr   [4]byte
		Port   [2]byte
		Device uint16
		MACs   [12]byte
	}
	device struct{ Index, Program uint32 }
)

// Open attaches the program to the devices of all pods. The first pod is the client.
func Open(node *load.Space, pods []Pod, services []Service) (*Ceiling, error) {
	c := new(Ceiling)
	if err := bpf.LoadNatObjects(&c.objects, nil); err != nil {
		return nil, fmt.Errorf("load the ceiling's program: %w", err)
	}
	err := c.attach(node, pods)
	if err == nil {
		err = c.fill(node, pods, services)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// attach also fills the device map, for the kernel looks indexes up in the namespace of the
// calling thread.
func (c *Ceiling) attach(node *load.Space, pods []Pod) error {
	for i, p := range pods {
		index, err := node.Index(p.Device)
		if err != nil {
			return err
		}
		err = node.Do(func() error {
			if err := c.objects.Devices.Put(uint32(i), &device{Index: uint32(index)}); err != nil {
				return err
			}
			l, err := link.AttachXDP(link.XDPOptions{Program: c.objects.Nat, Interface: index, Flags: link.XDPDriverMode})
			if err == nil {
				c.links = append(c.links, l)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("attach XDP to %s of %s: %w", p.Device, node.Name(), err)
		}
	}
	return nil
}

func (c *Ceiling) fill(node *load.Space, pods []Pod, services []Service) error {
	client, err := hopTo(node, pods, 0, 0)
	if err != nil {
		return err
	}
	if err := c.objects.Clients.Put(uint32(0), client); err != nil {
		return err
	}
	next := uint32(0)
	for _, s := range services {
		r := run{First: next, Count: uint32(len(s.Backends))}
		for _, b := range s.Backends {
			h, err := hopTo(node, pods, b, s.Target)
			if err != nil {
				return err
			}
			if err := c.objects.Backends.Put(next, h); err != nil {
				return fmt.Errorf("backend %d: %w", next, err)
			}
			next++
		}
		f := frontend{Addr: s.Frontend.Addr().As4(), Port: big(s.Frontend.Port())}
		if err := c.objects.Frontends.Put(&f, &r); err != nil {
			return fmt.Errorf("frontend %s: %w", s.Frontend, err)
		}
	}
	return nil
}

func hopTo(node *load.Space, pods []Pod, i int, port uint16) (*hop, error) {
	own, err := node.MAC(pods[i].Device)
	if err != nil {
		return nil, err
	}
	h := &hop{Addr: pods[i].Addr.As4(), Port: big(port), Device: uint16(i)}
	copy(h.MACs[:6], pods[i].MAC[:])
	copy(h.MACs[6:], own[:])
	return h, nil
}

func big(v uint16) [2]byte { return [2]byte{byte(v >> 8), byte(v)} }

// Close detaches the program.
func (c *Ceiling) Close() error {
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, c.objects.Close())...)
}
