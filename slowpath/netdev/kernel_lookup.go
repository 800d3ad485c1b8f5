package netdev

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// RouteTo implements Stack.
func (k *Kernel) RouteTo(to netip.Addr) (Route, error) {
	all, err := k.routing.RouteGet(to.AsSlice())
	switch {
	case err == nil && len(all) > 0:
		one := &all[0]
		return Route{
			Destination: netip.PrefixFrom(to, to.BitLen()), Gateway: gatewayOf(one.Gw, one.Via), Source: addrOf(one.Src),
			Device: one.LinkIndex, Type: Unicast,
		}, nil
	case err == nil, nowhere(err):
		return Route{}, fmt.Errorf("route to %s: %w", to, ErrNotFound)
	}
	return Route{}, fmt.Errorf("route to %s: %w", to, translate(err))
}

// nowhere reports the answers of the kernel that mean that packets to an address do not leave:
// no route, or one of the kinds unreachable, prohibit and blackhole.
func nowhere(err error) bool {
	for _, e := range []error{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
