package attach

import (
	"fmt"
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// aliases are the prefixes of aliases that are to be routed: without an address of the
// family there is nothing to stand for.
func (f *Follower) aliases(a model.Attachments) (out []netip.Prefix) {
	for _, p := range f.alias {
		if p.Addr().Is4() && a.Node4.IsValid() || p.Addr().Is6() && a.Node6.IsValid() {
			out = append(out, p)
		}
	}
	return out
}

// aliasTaken says that somebody else routes the aliases.
func (f *Follower) aliasTaken(p netip.Prefix, by netdev.Route) model.Problem {
	return model.Problem{
		Kind: "Node", Object: f.node, Reason: "RouteTaken",
		Message: fmt.Sprintf("%s has a route of somebody else already, which stays: %s; processes of the node do not reach its own node ports, whose aliases are there: remove that route", p, by),
	}
}
