package netdev

import (
	"fmt"
	"net/netip"
	"slices"
)

// maxName is IFNAMSIZ without the zero that ends a name.
const maxName = 15

// AddLink adds a device and returns it with its index; indexes are never used twice.
// A zero PeerNamespace with a zero Peer means no peer.
func (f *Fake) AddLink(l Link) (Link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.checkLink(l); err != nil {
		return Link{}, err
	}
	if _, err := f.byName(l.Name); err == nil {
		return Link{}, fmt.Errorf("device %s: %w: the name is taken", l.Name, ErrInvalid)
	}
	f.next++
	l.Index = f.next
	if l.Peer == 0 {
		l.PeerNamespace = NoNamespace
	}
	f.links[l.Index] = l
	f.notify()
	return l, nil
}

func (f *Fake) checkLink(l Link) error {
	switch {
	case l.Name == "" || len(l.Name) > maxName:
		return fmt.Errorf("device name %q: %w: 1 to %d bytes", l.Name, ErrInvalid, maxName)
	case l.MTU < 68 || l.MTU > 65536:
		return fmt.Errorf("device %s: %w: MTU %d is outside 68 to 65536", l.Name, ErrInvalid, l.MTU)
	case l.Master != 0 && f.links[l.Master].Kind != KindBridge && f.links[l.Master].Kind != "bond":
		return fmt.Errorf("device %s: %w: master #%d is no bridge or bond", l.Name, ErrInvalid, l.Master)
	}
	return nil
}

// SetLink changes a device in place, by index. Going down takes its routes away.
func (f *Fake) SetLink(l Link) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, err := f.byIndex(l.Index)
	if err != nil {
		return err
	}
	if err := f.checkLink(l); err != nil {
		return err
	}
	if old.Up && !l.Up {
		f.forget(l.Index)
	}
	f.links[l.Index] = l
	if !old.Up && l.Up {
		f.connect(l.Index)
	}
	f.notify()
	return nil
}

// DeleteLink removes a device with everything that hangs on it.
func (f *Fake) DeleteLink(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(name)
	if err != nil {
		return err
	}
	f.forget(l.Index)
	f.addresses = slices.DeleteFunc(f.addresses, func(a Address) bool { return a.Device == l.Index })
	f.stations = slices.DeleteFunc(f.stations, func(s Station) bool { return s.Port == l.Index || s.Bridge == l.Index })
	delete(f.links, l.Index)
	delete(f.peers, l.Index)
	for i, other := range f.links {
		if other.Master == l.Index {
			other.Master = 0
			f.links[i] = other
		}
	}
	f.notify()
	return nil
}

// forget drops what a device loses when it goes down.
func (f *Fake) forget(device int) {
	f.routes = slices.DeleteFunc(f.routes, func(r Route) bool { return r.Device == device })
	f.neighbours = slices.DeleteFunc(f.neighbours, func(n Neighbour) bool { return n.Device == device })
}

// connect adds the connected routes of a device that came up.
func (f *Fake) connect(device int) {
	for _, a := range f.addresses {
		if a.Device == device {
			f.connected(a)
		}
	}
}

func (f *Fake) connected(a Address) {
	if a.Prefix.IsSingleIP() || !f.links[a.Device].Up || f.links[a.Device].Loopback {
		return
	}
	r := Route{
		Destination: a.Prefix.Masked(), Device: a.Device, Type: Unicast,
		Scope: ScopeLink, Protocol: ProtocolKernel, Source: a.Prefix.Addr(),
	}
	if a.Prefix.Addr().Is6() {
		r.Scope, r.Metric, r.Source = ScopeUniverse, 256, netip.Addr{}
	}
	f.put(r)
}

// SetPeer says what is at the other end of a veth.
func (f *Fake) SetPeer(device string, p Peer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(device)
	if err != nil {
		return err
	}
	if !l.LeadsOut() {
		return fmt.Errorf("other end of %s: %w: it is not a veth into another namespace", device, ErrInvalid)
	}
	f.peers[l.Index] = p
	f.notify()
	return nil
}

// SetOffloads says what Offloads answers.
func (f *Fake) SetOffloads(device string, o Offloads) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.byName(device); err != nil {
		return err
	}
	f.offloads[device] = o
	return nil
}
