package attach

import (
	"net/netip"
	"slices"

	"lace-cni.io/lace/slowpath/netdev"
)

// SetExternal says which addresses outside the service ranges are Services', whole: the
// node's own packets to them are routed to the trunk too. Until it is called for the first
// time the routes that an earlier run made stay. Safe for concurrent use.
func (f *Follower) SetExternal(addresses []netip.Addr) {
	f.mu.Lock()
	same := f.told && slices.Equal(f.external, addresses)
	f.external, f.told = slices.Clone(addresses), true
	f.mu.Unlock()
	if same {
		return
	}
	f.rouse()
}

// rouse makes the follower look again.
func (f *Follower) rouse() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

// destinations is everything that is to be routed to the trunk, and whether the external
// addresses are known. An address of the node itself never leaves it, and one in a range is
// routed with it.
func (f *Follower) destinations(v netdev.View, ranges []netip.Prefix) (out []netip.Prefix, told bool) {
	f.mu.Lock()
	external, told := f.external, f.told
	f.mu.Unlock()
	out = slices.Clone(ranges)
	own := make(map[netip.Addr]bool, len(v.Addresses))
	for _, a := range v.Addresses {
		own[a.Prefix.Addr()] = true
	}
	for _, a := range external {
		inside := func(p netip.Prefix) bool { return p.Contains(a) }
		if !own[a] && !slices.ContainsFunc(ranges, inside) {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out, told
}

func byDestination(routes []netdev.Route) map[netip.Prefix][]netdev.Route {
	out := make(map[netip.Prefix][]netdev.Route)
	for _, r := range routes {
		out[r.Destination] = append(out[r.Destination], r)
	}
	return out
}
