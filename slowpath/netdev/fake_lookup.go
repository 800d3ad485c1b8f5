package netdev

import (
	"fmt"
	"net/netip"
)

// RouteTo implements Stack: the longest prefix has it, of equals the lowest metric.
func (f *Fake) RouteTo(to netip.Addr) (Route, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("RouteTo"); err != nil {
		return Route{}, err
	}
	var best Route
	for _, r := range f.routes {
		if !r.Destination.Contains(to) {
			continue
		}
		more := r.Destination.Bits() - best.Destination.Bits()
		if !best.Destination.IsValid() || more > 0 || more == 0 && r.Metric < best.Metric {
			best = r
		}
	}
	if !best.Destination.IsValid() || best.Type != Unicast {
		return Route{}, fmt.Errorf("route to %s: %w", to, ErrNotFound)
	}
	return best, nil
}
