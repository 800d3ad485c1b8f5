package eligible

import (
	"cmp"
	"slices"
	"strings"

	"lace-cni.io/lace/control/model"
)

// Sort returns the endpoints ordered by address and port, of several copies the one
// that counts first. It returns its argument when that is in order already, and a copy
// otherwise.
func Sort(endpoints []model.Endpoint) []model.Endpoint {
	if slices.IsSortedFunc(endpoints, compare) {
		return endpoints
	}
	sorted := slices.Clone(endpoints)
	slices.SortFunc(sorted, compare)
	return sorted
}

// Unique returns the copies that count of sorted endpoints: its argument when there is
// no other.
func Unique(sorted []model.Endpoint) []model.Endpoint {
	for i := 1; i < len(sorted); i++ {
		if same(&sorted[i-1], &sorted[i]) {
			return slices.CompactFunc(slices.Clone(sorted), func(a, b model.Endpoint) bool { return same(&a, &b) })
		}
	}
	return sorted
}

func same(a, b *model.Endpoint) bool { return a.Port == b.Port && a.Addr == b.Addr }

// compare is a total order up to identity, so that no result depends on what came first.
func compare(a, b model.Endpoint) int {
	if c := a.Addr.Compare(b.Addr); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Port, b.Port); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(one(a.Terminating), one(b.Terminating)),
		cmp.Compare(one(b.Ready), one(a.Ready)),
		cmp.Compare(one(b.Serving), one(a.Serving)),
		strings.Compare(a.Node, b.Node),
		strings.Compare(a.Zone, b.Zone),
		strings.Compare(a.Pod, b.Pod),
		slices.Compare(a.NodeHints, b.NodeHints),
		slices.Compare(a.ZoneHints, b.ZoneHints),
	)
}
