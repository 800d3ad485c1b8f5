package attach

import (
	"net/netip"
	"sync"

	"lace-cni.io/lace/slowpath/netdev"
)

// serviceRanges are the ranges of Services ranges, which may be known from the beginning or become known
// later and change. Safe for concurrent use.
type serviceRanges struct {
	mu    sync.Mutex
	known bool
	all   []netip.Prefix
}

// newRanges begins with ranges that are known, or with none that are.
func newRanges(all []netip.Prefix) *serviceRanges {
	return &serviceRanges{known: all != nil, all: masked(all)}
}

// SetRanges replaces the service ranges. Until it is called by whoever did not know them
// at the start, the routes that an earlier agent made are left as they are. Safe for
// concurrent use.
func (f *Follower) SetRanges(all []netip.Prefix) {
	f.ranges.mu.Lock()
	f.ranges.known, f.ranges.all = true, masked(all)
	f.ranges.mu.Unlock()
	f.rouse()
}

// read returns the ranges. While they are not known they are taken to be those that are
// routed already.
func (r *serviceRanges) read(v netdev.View) (all []netip.Prefix, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known {
		return r.all, true
	}
	for _, route := range v.Routes {
		if route.Protocol == netdev.ProtocolLace {
			all = append(all, route.Destination)
		}
	}
	return all, false
}

func masked(in []netip.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, len(in))
	for i, p := range in {
		out[i] = p.Masked()
	}
	return out
}
