package attach

import (
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/netdev"
)

// routes says through which port a prefix leaves: that of the best route's device, or
// the host port where the kernel has to decide (a device that is no port, a blackhole,
// a bridge's prefix towards pods that nobody has seen yet). Routes to pods and those that
// Lace made are not among them.
func (d *derivation) routes(ports []model.Port) []model.Route {
	byDevice := make(map[int]uint16, len(ports))
	held := make(map[netip.Addr]bool)
	for _, p := range ports {
		byDevice[p.Ifindex] = p.ID
		for _, a := range p.Addresses {
			held[a] = true
		}
	}
	best := make(map[netip.Prefix]netdev.Route)
	var order []netip.Prefix
	for _, r := range d.Routes { // best metric first within a prefix
		to := r.Destination
		if r.Protocol == netdev.ProtocolLace || d.local(&r) || to.IsSingleIP() && (held[to.Addr()] || d.own[to.Addr()]) {
			continue
		}
		old, seen := best[to]
		switch {
		case !seen:
			order = append(order, to)
		case old.Metric != r.Metric || byDevice[old.Device] != 0 || byDevice[r.Device] == 0:
			continue // only a further hop of the same route that has a port may displace one without
		}
		best[to] = r
	}
	var out []model.Route
	for _, to := range order {
		port := byDevice[best[to].Device]
		if port == 0 {
			if !d.trunk.Up {
				continue // there is no host port
			}
			port = table.HostPort
		}
		out = append(out, model.Route{Prefix: to, Port: port})
	}
	return out
}

// local reports whether a route is none of the tables' business: what is meaningful on one
// link only, and what leads a service range to the trunk. A route of somebody else to a
// prefix that is also called a service range is one like any other.
func (d *derivation) local(r *netdev.Route) bool {
	to := r.Destination
	if to.Bits() == 0 {
		return false
	}
	return !routable(to.Addr()) || r.Device == d.trunk.Index && slices.Contains(d.ranges, to)
}
