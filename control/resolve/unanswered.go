package resolve

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
)

// Unanswered are the families of which the node has addresses to answer node ports at, and
// none of those that are asked for: the Node object names others, or prefixes fit none. A
// family that nobody names an address of is no mistake. Nil without a host port: then there
// are no addresses yet.
func (n NodePorts) Unanswered(node model.Node, a *model.Attachments) (families []int) {
	picked := n.Of(node, a)
	for _, f := range []int{4, 6} {
		of := func(x netip.Addr) bool { return family(x) == f }
		if slices.ContainsFunc(picked, of) || !n.names(node, f) {
			continue
		}
		for i := range a.Ports {
			if a.Ports[i].Kind == model.PortHost && slices.ContainsFunc(a.Ports[i].Addresses, of) {
				families = append(families, f)
			}
		}
	}
	return families
}

// names says whether an address of the family is asked for by itself or by a prefix.
func (n NodePorts) names(node model.Node, f int) bool {
	prefixed := slices.ContainsFunc(n.prefixes, func(p netip.Prefix) bool { return family(p.Addr()) == f })
	object := slices.ContainsFunc(node.Addresses, func(x netip.Addr) bool { return family(x) == f })
	return prefixed || object && (n.primary || len(n.prefixes) == 0)
}

// NodePortsUnanswered are the Problems of the families whose node ports nobody answers though
// Services have some: one each, of the node. services are those that are served, in the
// order in which the first one is to be named.
func (o *Objects) NodePortsUnanswered(n NodePorts, node model.Node, a *model.Attachments, services []*model.Service) (out []model.Problem) {
	for _, f := range n.Unanswered(node, a) {
		first, count := "", 0
		for _, s := range services {
			if !hasNodePort(o.Services[s.Name]) || len(s.Ports) == 0 {
				continue
			}
			if _, has := s.Ports[0].Families[f]; !has {
				continue
			}
			if count++; first == "" {
				first = s.Name.String()
			}
		}
		if count == 0 {
			continue
		}
		out = append(out, model.Problem{
			Kind: "Node", Object: node.Name, Field: "status.addresses", Reason: "NoNodePortAddress",
			Message: fmt.Sprintf("node ports are not answered here over %s (%d Services have some, %s among them): the node holds no %s address that --nodeport-addresses %s means, and the internal addresses of its Node object are %s; correct the Node object, or name addresses that the node has",
				familyName(f), count, first, familyName(f), n, texts(node.Addresses)),
		})
	}
	return out
}

func hasNodePort(svc *corev1.Service) bool {
	return svc != nil && external(svc) && slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 })
}

// texts lists addresses for people.
func texts(addresses []netip.Addr) string {
	if len(addresses) == 0 {
		return "none"
	}
	out := ""
	for i, a := range addresses {
		if i > 0 {
			out += ", "
		}
		out += a.String()
	}
	return model.Excerpt(out)
}
