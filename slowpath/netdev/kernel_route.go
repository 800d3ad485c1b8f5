package netdev

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Routes implements Stack.
func (k *Kernel) Routes() ([]Route, error) {
	var out []Route
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		all, err := dump("routes", func() ([]netlink.Route, error) {
			return k.routing.RouteListFiltered(family, &netlink.Route{}, 0)
		})
		if err != nil {
			return nil, err
		}
		for i := range all {
			out = append(out, hopsOf(&all[i])...)
		}
	}
	slices.SortStableFunc(out, compareRoutes)
	return out, nil
}

// compareRoutes orders by destination, then by metric. Among equals the order of the
// kernel's dump stays, which is that of its look-up.
func compareRoutes(a, b Route) int {
	return cmp.Or(
		a.Destination.Addr().Compare(b.Destination.Addr()),
		cmp.Compare(a.Destination.Bits(), b.Destination.Bits()),
		cmp.Compare(a.Metric, b.Metric))
}

// hopsOf turns a route of the library into one Route per usable hop.
func hopsOf(r *netlink.Route) []Route {
	one := Route{
		Destination: prefixOf(r.Dst, r.Family),
		Gateway:     gatewayOf(r.Gw, r.Via),
		Source:      addrOf(r.Src),
		Device:      r.LinkIndex,
		Type:        RouteType(r.Type),
		Scope:       Scope(r.Scope),
		Protocol:    Protocol(r.Protocol),
		Metric:      r.Priority,
		MTU:         r.MTU,
	}
	switch one.Type {
	case Unicast:
	case Blackhole, Unreachable, Prohibit:
		one.Device = 0 // IPv6 says lo
		return []Route{one}
	default: // local, broadcast, anycast, multicast
		return nil
	}
	if len(r.MultiPath) == 0 {
		if r.Flags&unix.RTNH_F_DEAD != 0 {
			return nil
		}
		return []Route{one}
	}
	var out []Route
	for _, hop := range r.MultiPath {
		if hop.Flags&unix.RTNH_F_DEAD != 0 {
			continue
		}
		h := one
		h.Device, h.Gateway = hop.LinkIndex, gatewayOf(hop.Gw, hop.Via)
		out = append(out, h)
	}
	return out
}

func prefixOf(n *net.IPNet, family int) netip.Prefix {
	if n == nil {
		if family == unix.AF_INET6 {
			return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addrOf(n.IP), bits)
}

func addrOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// gatewayOf reads either form of gateway: of the same family, or an IPv6 one for
// an IPv4 destination (RTA_VIA).
func gatewayOf(gw net.IP, via netlink.Destination) netip.Addr {
	if v, ok := via.(*netlink.Via); ok && v != nil {
		return addrOf(v.Addr)
	}
	return addrOf(gw)
}

// ReplaceRoute implements Stack.
func (k *Kernel) ReplaceRoute(r Route) error {
	msg, err := messageOf(r)
	if err != nil {
		return err
	}
	if err := k.routing.RouteReplace(msg); err != nil {
		return fmt.Errorf("route %s: %w", r, translate(err))
	}
	return nil
}

// DeleteRoute implements Stack.
func (k *Kernel) DeleteRoute(r Route) error {
	msg, err := messageOf(r)
	if err != nil {
		return err
	}
	if err := k.routing.RouteDel(msg); err != nil {
		return fmt.Errorf("removing route %s: %w", r, translate(err))
	}
	return nil
}

func messageOf(r Route) (*netlink.Route, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	msg := &netlink.Route{
		LinkIndex: r.Device,
		Dst:       netOf(r.Destination),
		Scope:     netlink.Scope(r.Scope),
		Protocol:  netlink.RouteProtocol(r.Protocol),
		Priority:  r.Metric,
		MTU:       r.MTU,
		Type:      int(r.kind()),
		Table:     unix.RT_TABLE_MAIN,
	}
	if r.Gateway.IsValid() {
		msg.Gw = r.Gateway.AsSlice()
	}
	if r.Source.IsValid() {
		msg.Src = r.Source.AsSlice()
	}
	return msg, nil
}

func netOf(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func (r *Route) kind() RouteType {
	if r.Type == 0 {
		return Unicast
	}
	return r.Type
}

// check refuses what no kernel takes, with a better sentence than EINVAL.
func (r *Route) check() error {
	d := r.Destination
	switch {
	case !d.IsValid():
		return fmt.Errorf("route without a destination: %w", ErrInvalid)
	case d != d.Masked():
		return fmt.Errorf("route %s: %w: the destination has host bits, write %s", r, ErrInvalid, d.Masked())
	case r.Gateway.IsValid() && r.Gateway.Is4() != d.Addr().Is4():
		return fmt.Errorf("route %s: %w: gateway and destination are of two families", r, ErrInvalid)
	case r.Source.IsValid() && r.Source.Is4() != d.Addr().Is4():
		return fmt.Errorf("route %s: %w: source and destination are of two families", r, ErrInvalid)
	case r.kind() == Unicast && r.Device <= 0:
		return fmt.Errorf("route %s: %w: a unicast route needs a device", r, ErrInvalid)
	}
	return nil
}
