package resolve

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
)

// Node resolves one Node: its zone, its internal addresses, its pod prefixes.
func Node(n *corev1.Node) (model.Node, []model.Problem) {
	r := &report{kind: "Node", object: n.Name}
	out := model.Node{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone]}
	for i, a := range n.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		addr, wrong := parse(a.Address)
		if wrong != "" {
			r.add(fmt.Sprintf("status.addresses[%d].address", i), "BadAddress", "%q %s; correct the address", a.Address, wrong)
			continue
		}
		if !slices.Contains(out.Addresses, addr) {
			out.Addresses = append(out.Addresses, addr)
		}
	}
	out.PodCIDRs = podCIDRs(n, r)
	return out, r.all()
}

// NodeAddresses are all addresses that the object gives to the node, internal and external,
// sorted. What is no address is left out.
func NodeAddresses(n *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, a := range n.Status.Addresses {
		if addr, wrong := parse(a.Address); wrong == "" {
			out = append(out, addr)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func podCIDRs(n *corev1.Node, r *report) (out []netip.Prefix) {
	texts, field := n.Spec.PodCIDRs, func(i int) string { return fmt.Sprintf("spec.podCIDRs[%d]", i) }
	if len(texts) == 0 && n.Spec.PodCIDR != "" {
		texts, field = []string{n.Spec.PodCIDR}, func(int) string { return "spec.podCIDR" }
	}
	for i, s := range texts {
		p, err := netip.ParsePrefix(s)
		if err != nil || p.Addr().Is4In6() {
			r.add(field(i), "BadPrefix", "%q is no IP prefix; write address/length", s)
			continue
		}
		out = append(out, p.Masked())
	}
	return out
}
