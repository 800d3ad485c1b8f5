package eligible_test

import (
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
)

// slowly is the specification again, sentence by sentence and without any thought of
// cost: sets are maps, and each rule is a filter of its own.
func slowly(endpoints []model.Endpoint, policy model.Policy, closest bool, node, zone string) (chosen map[netip.AddrPort]bool, anywhere bool) {
	counting := map[netip.AddrPort]model.Endpoint{}
	for _, e := range endpoints {
		key := netip.AddrPortFrom(e.Addr, e.Port)
		if old, ok := counting[key]; !ok || better(e, old) {
			counting[key] = e
		}
	}
	ready := keep(counting, func(e model.Endpoint) bool { return e.Ready })
	draining := keep(counting, func(e model.Endpoint) bool { return !e.Ready && e.Serving && e.Terminating })
	here := func(e model.Endpoint) bool { return node != "" && e.Node == node }
	anywhere = len(ready) > 0 || len(draining) > 0

	if policy == model.PolicyLocal {
		if l := keep(ready, here); len(l) > 0 {
			return names(l), anywhere
		}
		return names(keep(draining, here)), anywhere
	}
	if len(ready) == 0 {
		return names(draining), anywhere
	}
	if closest {
		if l := keep(ready, here); len(l) > 0 {
			return names(l), anywhere
		}
		if l := keep(ready, func(e model.Endpoint) bool { return zone != "" && e.Zone == zone }); len(l) > 0 {
			return names(l), anywhere
		}
		return names(ready), anywhere
	}
	unhinted := keep(ready, func(e model.Endpoint) bool { return len(e.NodeHints) == 0 })
	mine := keep(ready, func(e model.Endpoint) bool { return node != "" && slices.Contains(e.NodeHints, node) })
	if len(unhinted) == 0 && len(mine) > 0 {
		return names(mine), anywhere
	}
	unhinted = keep(ready, func(e model.Endpoint) bool { return len(e.ZoneHints) == 0 })
	mine = keep(ready, func(e model.Endpoint) bool { return zone != "" && slices.Contains(e.ZoneHints, zone) })
	if len(unhinted) == 0 && len(mine) > 0 {
		return names(mine), anywhere
	}
	return names(ready), anywhere
}

func keep(m map[netip.AddrPort]model.Endpoint, want func(model.Endpoint) bool) map[netip.AddrPort]model.Endpoint {
	out := map[netip.AddrPort]model.Endpoint{}
	for k, e := range m {
		if want(e) {
			out[k] = e
		}
	}
	return out
}

func names(m map[netip.AddrPort]model.Endpoint) map[netip.AddrPort]bool {
	out := map[netip.AddrPort]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// better says which of two copies of one address and port counts.
func better(a, b model.Endpoint) bool {
	if a.Terminating != b.Terminating {
		return !a.Terminating
	}
	if a.Ready != b.Ready {
		return a.Ready
	}
	if a.Serving != b.Serving {
		return a.Serving
	}
	if a.Node != b.Node {
		return a.Node < b.Node
	}
	if a.Zone != b.Zone {
		return a.Zone < b.Zone
	}
	if c := slices.Compare(a.NodeHints, b.NodeHints); c != 0 {
		return c < 0
	}
	return slices.Compare(a.ZoneHints, b.ZoneHints) < 0
}
