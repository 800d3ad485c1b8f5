package attach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/right"
	"lace-cni.io/lace/slowpath/netdev"
)

// ensure puts the routes of the service ranges in place and removes those of ranges
// that are no longer asked for. Until the fast path has made the trunk there is nothing
// to do: the kernel took the routes away together with the device.
func (f *Follower) ensure(v netdev.View, a model.Attachments, ranges []netip.Prefix) (problems []model.Problem) {
	trunk := trunkOf(v.Links)
	if !trunk.Up {
		return nil
	}
	wanted := make(map[netip.Prefix]netdev.Route)
	present := byDestination(v.Routes)
	ranges, problems = f.tooWide(a, ranges)
	destinations, told := f.destinations(v, ranges)
	for _, p := range append(f.aliases(a), destinations...) {
		if other, there := foreign(present[p]); there {
			if slices.Contains(f.alias, p) {
				problems = append(problems, f.aliasTaken(p, other))
				continue
			}
			problems = append(problems, f.taken(p, other))
			continue
		}
		r := rangeRoute(p, trunk.Index, a)
		wanted[p] = r
		if old, there := standing(present[p], r); there {
			f.placed[p] = r.Device
			if old.MTU == r.MTU {
				continue
			}
		}
		if err := f.stack.ReplaceRoute(r); err != nil {
			problems = append(problems, f.refused(p, err))
			continue
		}
		level := slog.LevelInfo
		if p.IsSingleIP() {
			level = slog.LevelDebug // there may be thousands
		}
		f.log.Log(context.Background(), level, "routed to the trunk", "prefix", p, "source", r.Source)
		f.place(v, p, r.Device)
	}
	for _, r := range v.Routes {
		if w, ok := wanted[r.Destination]; r.Protocol != netdev.ProtocolLace || ok && r.Device == w.Device {
			continue
		}
		if !told && r.IsHost() && r.Device == trunk.Index {
			continue // that of an external address, which nobody has told us of yet
		}
		if err := f.stack.DeleteRoute(r); err != nil && !errors.Is(err, netdev.ErrNotFound) {
			problems = append(problems, f.refused(r.Destination, err))
			continue
		}
		if r.Device == trunk.Index {
			delete(f.placed, r.Destination)
		}
	}
	return problems
}

// place notes to which device a range is routed now. One that was routed there before, and
// of which v knows no route of ours, had lost it to somebody else.
func (f *Follower) place(v netdev.View, p netip.Prefix, device int) {
	ours := func(r netdev.Route) bool {
		return r.Destination == p && r.Device == device && r.Protocol == netdev.ProtocolLace
	}
	if f.placed[p] == device && !slices.ContainsFunc(v.Routes, ours) {
		f.log.Warn("somebody else took away the route of a service range, it is put back", "range", p)
		f.repaired()
	}
	f.placed[p] = device
}

func trunkOf(links []netdev.Link) netdev.Link {
	for _, l := range links {
		if l.Name == Trunk {
			return l
		}
	}
	return netdev.Link{}
}

// rangeRoute sends a service range to the trunk. The source makes the node's own
// packets to Services bear an address that pods and other nodes can answer.
func rangeRoute(p netip.Prefix, trunk int, a model.Attachments) netdev.Route {
	r := netdev.Route{
		Destination: p, Device: trunk, Type: netdev.Unicast,
		Scope: netdev.ScopeLink, Protocol: netdev.ProtocolLace, Source: a.Node4, MTU: least(a.Ports, minMTU),
	}
	if p.Addr().Is6() {
		// The lowest metric, where the kernel's own default would be 1024.
		r.Scope, r.Source, r.Metric = netdev.ScopeUniverse, a.Node6, 1
		r.MTU = least(a.Ports, minMTU6)
	}
	return r
}

// minMTU6 is what every IPv6 link takes (RFC 8200, section 5).
const minMTU6 = 1280

// least is the smallest MTU behind the trunk, which takes more itself: so the node cuts its
// own datagrams to what fits every backend, where it would have to learn that from an error
// that costs the first one. 0: nothing is known.
func least(ports []model.Port, floor int) (mtu int) {
	for _, p := range ports {
		if p.Kind != model.PortHost && p.MTU > 0 && (mtu == 0 || p.MTU < mtu) {
			mtu = max(p.MTU, floor)
		}
	}
	return mtu
}

// standing looks for the wanted route, whatever its MTU.
func standing(routes []netdev.Route, want netdev.Route) (netdev.Route, bool) {
	for _, r := range routes {
		if r.Device == want.Device && r.Source == want.Source && r.Protocol == want.Protocol && !r.Gateway.IsValid() {
			return r, true
		}
	}
	return netdev.Route{}, false
}

func (f *Follower) refused(p netip.Prefix, err error) model.Problem {
	err = right.Explain(err, right.NetAdmin)
	return model.Problem{
		Kind: "Node", Object: f.node, Field: "serviceCIDRs", Reason: reasonRouteRefused,
		Message: fmt.Sprintf("the route of service range %s to %s cannot be set, it is tried again: %v", p, Trunk, err),
	}
}

// RemoveRoutes takes away every route that Lace made, whatever ranges it was made for, and
// says which are gone.
func RemoveRoutes(s netdev.Stack) (gone []netip.Prefix, err error) {
	routes, err := s.Routes()
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, r := range routes {
		if r.Protocol != netdev.ProtocolLace {
			continue
		}
		if err := s.DeleteRoute(r); err != nil && !errors.Is(err, netdev.ErrNotFound) {
			failed = append(failed, err)
			continue
		}
		gone = append(gone, r.Destination)
	}
	return gone, errors.Join(failed...)
}
