package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
)

func serviceProblem(s *model.Service, field, reason, format string, args ...any) model.Problem {
	return model.Problem{Kind: "Service", Object: s.Name.String(), Field: field, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// problems lists everything that the last snapshot does not honour, sorted.
func (c *Compiler) problems() []model.Problem {
	out := slices.Concat(c.wiringProblems, c.roomProblems(), c.conflicts(), c.refusals(), c.loops())
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
			if l != holder && !c.excluded.service(l.service) {
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
		out = append(out, serviceProblem(s.declared, "spec.clusterIPs", "AddressTaken",
			"%s belongs to Service %s, %s%s; give this Service an address of its own", &first.key, holder.owner.name, why, more))
	}
	return out
}

// note keeps what a Service alone gives reason to say, so that nobody has to ask all of
// them.
func (c *Compiler) note(s *model.Service) {
	p, ok := notProgrammed(s)
	if n := packet.NetworkID(s.Network); n > packet.MaxNetworkID {
		p, ok = serviceProblem(s, "", "BadNetwork", "not programmed: network %d is above %d", n, packet.MaxNetworkID), true
	}
	if ok {
		c.notices[s.Name] = p
	} else {
		delete(c.notices, s.Name)
	}
}

// notProgrammed says which addresses of a Service are known but not served yet. It is a
// notice: the Service works by its ClusterIP.
func notProgrammed(s *model.Service) (model.Problem, bool) {
	var words []string
	for _, p := range s.Ports {
		for _, f := range p.Frontends {
			if f.Kind != model.ClusterIP {
				words = append(words, fmt.Sprintf("%s %s:%s", f.Kind, f.Addr, portName(f.Port, f.Protocol)))
			}
		}
	}
	field := "spec.type"
	switch external := s.Type == "NodePort" || s.Type == "LoadBalancer"; {
	case len(words) == 0 && !external:
		return model.Problem{}, false
	case len(words) == 0:
		words = []string{"the type " + s.Type}
	case !external:
		field = "spec.externalIPs"
	}
	if n := len(words); n > 3 {
		words = append(words[:3], fmt.Sprintf("%d more", n-3))
	}
	return serviceProblem(s, field, "NotProgrammed",
		"%s: only ClusterIPs are served so far; reach the Service by its ClusterIP", strings.Join(words, ", ")), true
}
