package compile

import (
	"cmp"
	"fmt"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
)

func serviceProblem(s *model.Service, field, reason, format string, args ...any) model.Problem {
	return model.Problem{Kind: "Service", Object: s.Name.String(), Field: field, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// problems lists everything that the last snapshot does not honour, sorted.
func (c *Compiler) problems() []model.Problem {
	out := slices.Concat(c.wiringProblems, c.roomProblems(), c.conflicts(), c.refusals(), c.unasked(), c.loops())
	for _, p := range c.notices {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b model.Problem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// conflicts names every Service that does not get a frontend because another one has
// it, once however many of its ports are concerned.
func (c *Compiler) conflicts() (out []model.Problem) {
	lost := map[*service][]*claim{}
	for f := range c.contested {
		holder := c.holder(f)
		if holder == nil {
			continue
		}
		for _, l := range f.claims {
			if l != holder && !l.aliasOf.IsValid() && !c.excluded.service(l.service) && !c.barred(l) {
				lost[l.service] = append(lost[l.service], l)
			}
		}
	}
	for s, claims := range lost {
		slices.SortFunc(claims, func(a, b *claim) int { return a.compare(&b.key) })
		first := claims[0]
		holder := c.holder(first.frontend).service
		why := "which keeps it"
		if knownOlder(holder.declared, s.declared) {
			why = "which is older"
		}
		more := ""
		if n := len(claims) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more of its frontends)", n)
		}
		own := "an address"
		if first.kind == model.NodePort {
			own = "a node port"
		}
		out = append(out, serviceProblem(s.declared, fieldOf(first.kind), "AddressTaken",
			"%s belongs to Service %s, %s%s; give this Service %s of its own", &first.key, holder.owner.name, why, more, own))
	}
	return out
}

// fieldOf is where the address of a frontend is written.
func fieldOf(k model.FrontendKind) string {
	switch k {
	case model.NodePort:
		return "spec.ports"
	case model.ExternalIP:
		return "spec.externalIPs"
	case model.LoadBalancer:
		return "status.loadBalancer.ingress"
	}
	return "spec.clusterIPs"
}

// note keeps what a Service alone gives reason to say, so that nobody has to ask all of
// them.
func (c *Compiler) note(s *model.Service) {
	if n := packet.NetworkID(s.Network); n > packet.MaxNetworkID {
		c.notices[s.Name] = serviceProblem(s, "", "BadNetwork", "not programmed: network %d is above %d", n, packet.MaxNetworkID)
	} else {
		delete(c.notices, s.Name)
	}
}
