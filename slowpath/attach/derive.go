package attach

import (
	"cmp"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/netdev"
)

// proxyDevice is where kube-proxy in its IPVS mode puts the addresses of all Services,
// and leaves them when it is gone. They are not the node's own: a Service may have them.
const proxyDevice = "kube-ipvs0"

// derivation is the work on one view. It is thrown away with its result.
type derivation struct {
	netdev.View
	ranges   []netip.Prefix
	links    map[int]netdev.Link
	trunk    netdev.Link // zero while the fast path has not made it
	own      map[netip.Addr]bool
	uplinks  map[int]bool
	problems []model.Problem
}

// derive is a function of the view, but for the ids, which remember. Its results are
// sorted: equal views give equal attachments.
func derive(v netdev.View, s *ids, ranges []netip.Prefix) (model.Attachments, []model.Problem) {
	d := &derivation{View: v, ranges: ranges, links: make(map[int]netdev.Link), own: make(map[netip.Addr]bool)}
	for _, l := range v.Links {
		d.links[l.Index] = l
		if l.Name == Trunk {
			d.trunk = l
		}
	}
	for _, a := range v.Addresses {
		if d.links[a.Device].Name == proxyDevice {
			continue
		}
		d.own[a.Prefix.Addr()] = true
	}
	d.uplinks = d.findUplinks()

	ports := append(d.podPorts(), d.uplinkPorts()...)
	slices.SortFunc(ports, func(a, b model.Port) int { return cmp.Compare(a.Ifindex, b.Ifindex) })
	ports, refused := s.assign(ports)
	for _, p := range refused {
		d.problem(p.Device, "TooManyPorts", "the node has more ports than the %d that Lace can number; packets of Services through this device are not carried", table.MaxPorts-int(firstID))
	}
	ports = append(ports, d.hostPort()...)
	slices.SortFunc(ports, func(a, b model.Port) int { return cmp.Compare(a.ID, b.ID) })
	d.checkMTU(ports)
	d.narrow(ports)

	out := model.Attachments{Ports: ports, Routes: d.routes(ports)}
	out.Node4, out.Node6 = d.nodeAddress(is4), d.nodeAddress(is6)
	sortProblems(d.problems)
	return out, d.problems
}

func is4(a netip.Addr) bool { return a.Is4() }
func is6(a netip.Addr) bool { return a.Is6() }

// hostPort is the node itself: lace0 and every address that packets for the node bear.
// It is there once lace0 is up, which is when the service ranges are routed to it.
func (d *derivation) hostPort() []model.Port {
	if !d.trunk.Up {
		return nil
	}
	p := model.Port{
		ID: table.HostPort, Kind: model.PortHost, Device: d.trunk.Name, Ifindex: d.trunk.Index,
		MTU: d.trunk.MTU, HostMAC: d.trunk.MAC,
	}
	for a := range d.own {
		if routable(a) {
			p.Addresses = append(p.Addresses, a)
		}
	}
	slices.SortFunc(p.Addresses, netip.Addr.Compare)
	return []model.Port{p}
}

// routable leaves out what means something on one link or inside one host only.
// IPv4 link-local addresses stay: node-local DNS caches listen there.
func routable(a netip.Addr) bool {
	return !a.IsLoopback() && !a.IsMulticast() && !a.IsUnspecified() && !(a.Is6() && a.IsLinkLocalUnicast())
}

// narrow lowers the MTU of a port to the smallest that any route through its device has:
// packets of Services are delivered past the routes, and must not be longer than the kernel
// would send them. Where routes differ, the others get packets shorter than they could be,
// which nobody misses; too long ones would vanish. The routes to the trunk are Lace's own,
// and say what lies behind it, not what it takes.
func (d *derivation) narrow(ports []model.Port) {
	least := make(map[int]int)
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.MTU > 0 && r.Type == netdev.Unicast && (least[r.Device] == 0 || r.MTU < least[r.Device]) {
			least[r.Device] = r.MTU
		}
	}
	for i := range ports {
		p := &ports[i]
		if mtu := least[p.Ifindex]; p.Kind != model.PortHost && mtu >= minMTU && mtu < p.MTU {
			p.MTU = mtu
		}
	}
}

// minMTU is what every IPv4 link takes (RFC 791); a route that says less is not believed.
const minMTU = 68

// checkMTU finds ports whose packets may not fit through the trunk: their senders are told
// (packet-too-big), which one who does not listen to ICMP will not hear.
func (d *derivation) checkMTU(ports []model.Port) {
	if d.trunk.Index == 0 {
		return
	}
	for _, p := range ports {
		if p.MTU > d.trunk.MTU {
			what, do := TooLong(p.MTU, d.trunk.MTU)
			d.problem(p.Device, "MTUExceedsTrunk", "%s; %s", what, do)
		}
	}
}
