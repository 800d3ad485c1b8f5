package netdev

import (
	"fmt"
	"net/netip"
	"slices"
)

// defaultMetric6 is what the kernel gives an IPv6 route that names no metric
// (IP6_RT_PRIO_USER).
const defaultMetric6 = 1024

func (r Route) normal() Route {
	r.Type = r.kind()
	if r.Destination.Addr().Is6() {
		r.Scope = ScopeUniverse
		if r.Metric == 0 {
			r.Metric = defaultMetric6
		}
	}
	return r
}

// ReplaceRoute implements Stack.
func (f *Fake) ReplaceRoute(r Route) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("ReplaceRoute"); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	if err := f.admits(r); err != nil {
		return fmt.Errorf("route %s: %w", r, err)
	}
	f.put(r.normal())
	f.notify()
	return nil
}

// admits refuses what the kernel refuses in view of the devices and addresses.
func (f *Fake) admits(r Route) error {
	if r.kind() != Unicast {
		return nil
	}
	l, err := f.byIndex(r.Device)
	switch {
	case err != nil:
		return err
	case !l.Up:
		return ErrDown
	case r.Source.IsValid() && !f.owns(r.Source):
		return fmt.Errorf("%w: source %s is not an address of the node", ErrInvalid, r.Source)
	case r.Gateway.IsValid() && !f.onLink(r.Gateway, r.Device):
		return fmt.Errorf("%w: gateway %s is not on the link", ErrInvalid, r.Gateway)
	}
	return nil
}

func (f *Fake) onLink(gw netip.Addr, device int) bool {
	return gw.IsLinkLocalUnicast() || slices.ContainsFunc(f.routes, func(r Route) bool {
		return r.Device == device && !r.Gateway.IsValid() && !r.IsDefault() && r.Destination.Contains(gw)
	})
}

// put replaces the route with the same destination and metric, or adds it.
func (f *Fake) put(r Route) {
	for i, old := range f.routes {
		if old.Destination == r.Destination && old.Metric == r.Metric {
			f.routes[i] = r
			return
		}
	}
	f.routes = append(f.routes, r)
}

// AppendRoute adds a route beside others of the same destination and metric, as
// `ip route append` does.
func (f *Fake) AppendRoute(r Route) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := r.check(); err != nil {
		return err
	}
	if err := f.admits(r); err != nil {
		return fmt.Errorf("route %s: %w", r, err)
	}
	f.routes = append(f.routes, r.normal())
	f.notify()
	return nil
}

// DeleteRoute implements Stack.
func (f *Fake) DeleteRoute(r Route) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("DeleteRoute"); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	want := r.normal()
	i := slices.IndexFunc(f.routes, func(old Route) bool {
		return old.Destination == want.Destination && old.Device == want.Device && old.Metric == want.Metric
	})
	if i < 0 {
		return fmt.Errorf("removing route %s: %w", r, ErrNotFound)
	}
	f.routes = slices.Delete(f.routes, i, i+1)
	f.notify()
	return nil
}
