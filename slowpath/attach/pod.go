package attach

import (
	"cmp"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// claim says that an address lives behind a pod's device.
type claim struct {
	addr   netip.Addr
	device int
	mac    netdev.MAC // as neighbours know it; zero: they do not
	routed bool       // a host route says so
	held   bool       // behind a bridge: the device at the other end has the address
}

// compareClaims orders by who has the better right to an address, worst first.
func compareClaims(a, b claim) int {
	return cmp.Or(
		compareBool(a.routed, b.routed),
		compareBool(a.held, b.held),
		cmp.Compare(a.device, b.device))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// podPorts finds the pods' devices by the addresses that lead to them.
func (d *derivation) podPorts() []model.Port {
	byDevice := make(map[int][]claim)
	for _, c := range d.settle(append(d.routedClaims(), d.bridgedClaims()...)) {
		byDevice[c.device] = append(byDevice[c.device], c)
	}
	var out []model.Port
	for _, l := range d.Links {
		if claims := byDevice[l.Index]; len(claims) > 0 {
			out = append(out, d.podPort(l, claims))
		}
	}
	return out
}

// podDevice reports whether the device may be a pod's.
func (d *derivation) podDevice(l netdev.Link) bool {
	return l.LeadsOut() && l.Up && !d.uplinks[l.Index] && l.Index != d.trunk.Index
}

// routedClaims are the host routes to devices that lead out of the namespace.
func (d *derivation) routedClaims() []claim {
	known := make(map[netip.Addr]map[int]netdev.MAC)
	for _, n := range d.Neighbours {
		if known[n.Addr] == nil {
			known[n.Addr] = make(map[int]netdev.MAC)
		}
		known[n.Addr][n.Device] = n.MAC
	}
	var out []claim
	for i := range d.Routes {
		r := &d.Routes[i]
		addr := r.Destination.Addr()
		if r.Type != netdev.Unicast || !r.IsHost() || r.Gateway.IsValid() || !routable(addr) {
			continue
		}
		if r.Protocol == netdev.ProtocolKernel && d.own[addr] {
			continue // what the kernel adds for the node's own IPv6 address of length 128
		}
		l := d.links[r.Device]
		if !d.podDevice(l) || l.Master != 0 {
			continue
		}
		out = append(out, claim{addr: addr, device: l.Index, routed: true, mac: known[addr][l.Index]})
	}
	return out
}

// bridgedClaims are the addresses behind ports of bridges: those that neighbours of
// the bridge show, and those of the devices at the other ends. The latter find a pod
// that has not sent anything yet.
func (d *derivation) bridgedClaims() []claim {
	var out []claim
	for _, b := range d.Links {
		if b.Kind == netdev.KindBridge && b.Up {
			out = append(out, d.claimsOf(b)...)
		}
	}
	return out
}

func (d *derivation) claimsOf(bridge netdev.Link) []claim {
	ports := d.stationsOf(bridge)
	var out []claim
	for _, n := range d.Neighbours {
		port, ok := ports[n.MAC]
		if n.Device == bridge.Index && ok && routable(n.Addr) {
			out = append(out, claim{addr: n.Addr, device: port, mac: n.MAC, held: d.holds(port, n.Addr)})
		}
	}
	for _, l := range d.Links {
		if l.Master != bridge.Index || !d.podDevice(l) {
			continue
		}
		for _, a := range d.Peers[l.Index].Addresses {
			if d.onLink(bridge.Index, a) {
				out = append(out, claim{addr: a, device: l.Index, held: true})
			}
		}
	}
	return out
}

// stationsOf says behind which pod's device a MAC address is: as the bridge learned it,
// or, once that has aged, as the device at the other end has it.
func (d *derivation) stationsOf(bridge netdev.Link) map[netdev.MAC]int {
	out := make(map[netdev.MAC]int)
	for _, l := range d.Links {
		p, ok := d.Peers[l.Index]
		if l.Master == bridge.Index && d.podDevice(l) && ok && p.MAC != (netdev.MAC{}) {
			out[p.MAC] = l.Index
		}
	}
	for _, s := range d.Stations {
		if s.Bridge == bridge.Index && d.podDevice(d.links[s.Port]) {
			out[s.MAC] = s.Port
		}
	}
	return out
}

func (d *derivation) holds(device int, a netip.Addr) bool {
	return slices.Contains(d.Peers[device].Addresses, a)
}

// onLink reports whether the address lies in a prefix of the bridge's own addresses.
func (d *derivation) onLink(bridge int, a netip.Addr) bool {
	return slices.ContainsFunc(d.Addresses, func(own netdev.Address) bool {
		return own.Device == bridge && routable(a) && own.Prefix.Contains(a)
	})
}

// settle leaves one claim for each address. The same device may claim an address in
// several ways.
func (d *derivation) settle(claims []claim) []claim {
	byAddr := make(map[netip.Addr][]claim)
	for _, c := range claims {
		byAddr[c.addr] = append(byAddr[c.addr], c)
	}
	var out []claim
	for addr, all := range byAddr {
		if d.own[addr] {
			d.problem(d.links[all[0].device].Name, "AddressOfNode", "address %s is the node's own: no packet of a Service goes to the pod under it", addr)
			continue
		}
		best := slices.MaxFunc(all, compareClaims)
		for _, c := range all {
			if c.device == best.device && c.mac != (netdev.MAC{}) {
				best.mac = c.mac
			}
		}
		out = append(out, best)
		d.contested(addr, best, all)
	}
	slices.SortFunc(out, func(a, b claim) int { return a.addr.Compare(b.addr) })
	return out
}

// contested notes the claims of other devices to an address.
func (d *derivation) contested(addr netip.Addr, best claim, all []claim) {
	noted := map[int]bool{best.device: true}
	for _, c := range all {
		if !noted[c.device] {
			noted[c.device] = true
			d.problem(d.links[c.device].Name, "AddressTaken",
				"address %s is now that of the pod behind %s: packets from here with that source are dropped (spoofed-source); remove the old pod's device, or give one of the two another address",
				addr, d.links[best.device].Name)
		}
	}
}

// podPort makes the port of a pod's device from the claims that it won.
func (d *derivation) podPort(l netdev.Link, claims []claim) model.Port {
	p := model.Port{Kind: model.PortPod, Device: l.Name, Ifindex: l.Index, MTU: l.MTU, HostMAC: l.MAC}
	if bridge, ok := d.links[l.Master]; ok && bridge.Kind == netdev.KindBridge {
		p.HostMAC = bridge.MAC // the pod's gateway is the bridge
	}
	p.PeerMAC = d.peerMAC(l, claims)
	for _, c := range claims {
		if c.mac != (netdev.MAC{}) && c.mac != p.PeerMAC {
			d.problem(l.Name, "SecondMAC", "address %s answers at %s, but the device at %s: a pod port has one MAC address, packets of Services do not go to this address", c.addr, c.mac, netdev.MAC(p.PeerMAC))
			continue
		}
		p.Addresses = append(p.Addresses, c.addr)
	}
	if p.PeerMAC == ([6]byte{}) {
		d.problem(l.Name, "NoPeerMAC", "the MAC address of the pod is not known yet; packets of Services go to it once the node has learned it, which any packet from the pod brings about")
	}
	return p
}

// peerMAC is where frames for the pod go: the device at the other end, or, where that
// cannot be seen, what the first address answers at.
func (d *derivation) peerMAC(l netdev.Link, claims []claim) [6]byte {
	for _, c := range claims {
		if c.mac != (netdev.MAC{}) {
			return c.mac
		}
	}
	return d.Peers[l.Index].MAC
}
