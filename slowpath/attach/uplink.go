package attach

import (
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// traits are what routes and addresses say about a device.
type traits struct {
	defaults  bool // carries a default route
	gateways  bool // carries a route by a gateway
	prefixes  bool // carries a route to more than one address
	hosts     bool // carries a route to exactly one address, without a gateway
	addressed bool // has an address of the node with a prefix that holds others
}

func (d *derivation) traitsOf() map[int]*traits {
	all := make(map[int]*traits)
	of := func(device int) *traits {
		t := all[device]
		if t == nil {
			t = new(traits)
			all[device] = t
		}
		return t
	}
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Type != netdev.Unicast || !routable(r.Destination.Addr()) && !r.IsDefault() {
			continue
		}
		t := of(r.Device)
		switch {
		case r.IsDefault():
			t.defaults = true
		case r.Gateway.IsValid():
			t.gateways = true
		case r.IsHost():
			t.hosts = true
		default:
			t.prefixes = true
		}
	}
	for _, a := range d.Addresses {
		if routable(a.Prefix.Addr()) && !a.Prefix.IsSingleIP() && a.Scope == netdev.ScopeUniverse {
			of(a.Device).addressed = true
		}
	}
	return all
}

// findUplinks picks the devices that lead to other nodes and the outside.
func (d *derivation) findUplinks() map[int]bool {
	all := d.traitsOf()
	out := make(map[int]bool)
	for _, l := range d.Links {
		t := all[l.Index]
		if t == nil || !d.candidate(l) || !d.leadsAway(l, t) {
			continue
		}
		if !l.Ethernet {
			d.problem(l.Name, "NotEthernet", "packets of Services that come in through this device are not carried: it has no Ethernet header; those that leave by it are left to the kernel's routes")
			continue
		}
		out[l.Index] = true
	}
	return out
}

// candidate leaves out what is never an uplink: the trunk, loopbacks, devices that are
// down, and members of a bridge or bond, whose master has the routes.
func (d *derivation) candidate(l netdev.Link) bool {
	return l.Up && !l.Loopback && l.Index != d.trunk.Index && l.Master == 0 && l.Kind != "dummy"
}

// leadsAway holds the rule for each kind of device.
func (d *derivation) leadsAway(l netdev.Link, t *traits) bool {
	switch {
	case l.LeadsOut():
		// A pod's veth may bear the pods' gateway as a single address, and routes by
		// the pod when it is a router; the wire's has a prefix or the way out.
		return t.defaults || t.addressed || t.gateways && !t.hosts
	case l.Kind == netdev.KindBridge:
		return t.defaults || t.gateways || t.addressed && d.hasWire(l.Index)
	}
	return t.defaults || t.gateways || t.prefixes
}

// hasWire reports whether a bridge has a port that is not a pod's.
func (d *derivation) hasWire(bridge int) bool {
	return slices.ContainsFunc(d.Links, func(l netdev.Link) bool { return l.Master == bridge && !l.LeadsOut() })
}

func (d *derivation) uplinkPorts() []model.Port {
	var out []model.Port
	for _, l := range d.Links {
		if d.uplinks[l.Index] {
			out = append(out, model.Port{
				Kind: model.PortUplink, Device: l.Name, Ifindex: l.Index, MTU: l.MTU, HostMAC: l.MAC, Near: l.Kind == netdev.KindVeth,
			})
		}
	}
	return out
}

// nodeAddress is the address of the family by which other nodes know this one: the
// preferred source of the default route, else the first address of its device, else
// the first address of the first uplink. Invalid when the node has none.
func (d *derivation) nodeAddress(family func(netip.Addr) bool) netip.Addr {
	for i := range d.Routes {
		r := &d.Routes[i]
		if !r.IsDefault() || !family(r.Destination.Addr()) || r.Type != netdev.Unicast {
			continue
		}
		if r.Source.IsValid() && d.own[r.Source] {
			return r.Source
		}
		if a := d.firstAddress(r.Device, family); a.IsValid() {
			return a
		}
	}
	for _, l := range d.Links {
		if d.uplinks[l.Index] {
			if a := d.firstAddress(l.Index, family); a.IsValid() {
				return a
			}
		}
	}
	return netip.Addr{}
}

func (d *derivation) firstAddress(device int, family func(netip.Addr) bool) netip.Addr {
	for _, a := range d.Addresses {
		ip := a.Prefix.Addr()
		if a.Device == device && a.Scope == netdev.ScopeUniverse && !a.Secondary && family(ip) && routable(ip) {
			return ip
		}
	}
	return netip.Addr{}
}
