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

// andMore says how many more there are, in brackets; of none nothing.
func andMore(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more of its %s)", n, what)
}

// problems lists everything that the last snapshot does not honour, sorted.
func (c *Compiler) problems() []model.Problem {
	out := slices.Concat(c.wiringProblems, c.roomProblems(), c.loops())
	for _, p := range c.notices {
		out = append(out, p)
	}
	slices.SortFunc(out, compareProblems)
	return merge(out, c.disputes.problems, compareProblems)
}

func compareProblems(a, b model.Problem) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}

// atTheNode is what is claimed, in words. A node port is one at whatever addresses the node has.
func (l *claim) atTheNode() string {
	if l.kind != model.NodePort {
		return l.String()
	}
	return fmt.Sprintf("node port %d/%s", l.port, model.Protocol(l.protocol))
}

// sameDoor reports whether two claims are one in these words.
func (l *claim) sameDoor(o *claim) bool {
	return l == o || l.kind == model.NodePort && o.kind == model.NodePort && l.port == o.port && l.protocol == o.protocol
}

// others counts the claims that are to another port than the first.
func (l *claim) others(claims []*claim) (n int) {
	for _, o := range claims {
		if !o.sameDoor(l) {
			n++
		}
	}
	return n
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
