package attach

import (
	"fmt"
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// foreign finds a route that Lace did not make, among those of one prefix. Whatever its
// metric, a route to the trunk beside it would take its packets or never be used; and the
// kernel would let ours replace it, which nobody could undo.
func foreign(routes []netdev.Route) (netdev.Route, bool) {
	for _, r := range routes {
		if r.Protocol != netdev.ProtocolLace {
			return r, true
		}
	}
	return netdev.Route{}, false
}

// taken says that a prefix is routed by somebody else, who keeps it.
func (f *Follower) taken(p netip.Prefix, by netdev.Route) model.Problem {
	return model.Problem{
		Kind: "Node", Object: f.node, Field: "serviceCIDRs", Reason: "RouteTaken",
		Message: fmt.Sprintf("%s has a route of somebody else already, which stays: %s; the node itself does not reach Services there: give Services another range, or remove that route", p, by),
	}
}

// tooWide drops ranges that hold an address by which other nodes know this one: what the
// node sends to its neighbours would go to the trunk.
func (f *Follower) tooWide(a model.Attachments, ranges []netip.Prefix) (kept []netip.Prefix, problems []model.Problem) {
	for _, p := range ranges {
		own := a.Node4
		if p.Addr().Is6() {
			own = a.Node6
		}
		if !own.IsValid() || !p.Contains(own) {
			kept = append(kept, p)
			continue
		}
		problems = append(problems, model.Problem{
			Kind: "Node", Object: f.node, Field: "serviceCIDRs", Reason: "RangeOfNode",
			Message: fmt.Sprintf("service range %s holds %s, an address of this node, and is not routed to %s; give Services a range of their own", p, own, Trunk),
		})
	}
	return kept, problems
}
