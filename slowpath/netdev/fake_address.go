package netdev

import (
	"fmt"
	"net/netip"
	"slices"
)

// AddAddress gives the device an address, with its connected route when it is up.
func (f *Fake) AddAddress(device string, prefix string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(device)
	if err != nil {
		return err
	}
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return fmt.Errorf("address of %s: %w: %w", device, ErrInvalid, err)
	}
	a := Address{Device: l.Index, Prefix: p, Scope: ScopeUniverse}
	switch {
	case p.Addr().IsLoopback():
		a.Scope = ScopeHost
	case p.Addr().Is6() && p.Addr().IsLinkLocalUnicast():
		a.Scope = ScopeLink
	}
	for _, old := range f.addresses {
		if old.Device == l.Index && old.Prefix == p {
			return fmt.Errorf("address %s of %s: %w: it is there already", p, device, ErrInvalid)
		}
		a.Secondary = a.Secondary || old.Device == l.Index && p.Addr().Is4() && old.Prefix.Masked() == p.Masked()
	}
	f.addresses = append(f.addresses, a)
	f.connected(a)
	f.notify()
	return nil
}

// DeleteAddress takes an address away, its connected route, and every route that
// prefers it as source.
func (f *Fake) DeleteAddress(device string, prefix string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(device)
	if err != nil {
		return err
	}
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return fmt.Errorf("address of %s: %w: %w", device, ErrInvalid, err)
	}
	i := slices.IndexFunc(f.addresses, func(a Address) bool { return a.Device == l.Index && a.Prefix == p })
	if i < 0 {
		return fmt.Errorf("address %s of %s: %w", p, device, ErrNotFound)
	}
	f.addresses = slices.Delete(f.addresses, i, i+1)
	f.routes = slices.DeleteFunc(f.routes, func(r Route) bool {
		return r.Source == p.Addr() ||
			r.Device == l.Index && r.Destination == p.Masked() && r.Protocol == ProtocolKernel
	})
	f.notify()
	return nil
}

// SetNeighbour says what ARP or NDP knows on a device, in the place of what it knew.
func (f *Fake) SetNeighbour(device, addr string, mac MAC) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(device)
	if err != nil {
		return err
	}
	if !l.Up {
		return fmt.Errorf("neighbour %s on %s: %w", addr, device, ErrDown)
	}
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return fmt.Errorf("neighbour on %s: %w: %w", device, ErrInvalid, err)
	}
	f.neighbours = slices.DeleteFunc(f.neighbours, func(n Neighbour) bool { return n.Device == l.Index && n.Addr == ip })
	f.neighbours = append(f.neighbours, Neighbour{Device: l.Index, Addr: ip, MAC: mac})
	f.notify()
	return nil
}

// DeleteNeighbour forgets an address on a device.
func (f *Fake) DeleteNeighbour(device, addr string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(device)
	if err != nil {
		return err
	}
	before := len(f.neighbours)
	f.neighbours = slices.DeleteFunc(f.neighbours, func(n Neighbour) bool {
		return n.Device == l.Index && n.Addr.String() == addr
	})
	if len(f.neighbours) == before {
		return fmt.Errorf("neighbour %s on %s: %w", addr, device, ErrNotFound)
	}
	f.notify()
	return nil
}

// SetStation lets a bridge find a MAC address behind one of its ports, as it learns
// from a frame: it moves there from wherever it was.
func (f *Fake) SetStation(port string, mac MAC) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(port)
	if err != nil {
		return err
	}
	if f.links[l.Master].Kind != KindBridge {
		return fmt.Errorf("station %s behind %s: %w: it is no port of a bridge", mac, port, ErrInvalid)
	}
	f.stations = slices.DeleteFunc(f.stations, func(s Station) bool { return s.Bridge == l.Master && s.MAC == mac })
	f.stations = append(f.stations, Station{Bridge: l.Master, Port: l.Index, MAC: mac})
	f.notify()
	return nil
}

// ForgetStations empties the forwarding database of a bridge, as ageing does.
func (f *Fake) ForgetStations(bridge string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.byName(bridge)
	if err != nil {
		return err
	}
	f.stations = slices.DeleteFunc(f.stations, func(s Station) bool { return s.Bridge == l.Index })
	f.notify()
	return nil
}
