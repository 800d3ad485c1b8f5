package resolve

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
)

// origin is an address at which a Service is reached, and what kind it is.
type origin struct {
	kind    model.FrontendKind
	addr    netip.Addr
	aliasOf netip.Addr // see model.Frontend
}

// origins returns every address of the Service whose family it has, ClusterIPs first.
// Addresses of the node carry node ports only. Those of the balancer come before external
// ones, so that an address which is both is restricted to the source ranges.
func origins(svc *corev1.Service, own []netip.Addr, node model.Node, r *report) []origin {
	var out []origin
	for _, a := range own {
		out = append(out, origin{kind: model.ClusterIP, addr: a})
	}
	if external(svc) {
		for _, a := range node.NodePorts {
			if hasFamily(own, a) {
				out = append(out, origin{kind: model.NodePort, addr: a})
			}
		}
	}
	out = append(out, balancerIPs(svc, own, r)...)
	for i, s := range svc.Spec.ExternalIPs {
		field := fmt.Sprintf("spec.externalIPs[%d]", i)
		a, wrong := parse(s)
		if wrong != "" {
			r.add(field, "BadAddress", "%q %s; write an address that is routed to the nodes", s, wrong)
			continue
		}
		if !hasFamily(own, a) {
			r.lacksFamily(field, a, "remove the address")
			continue
		}
		out = append(out, origin{kind: model.ExternalIP, addr: a})
	}
	return append(out, aliases(out, node)...)
}

// hasFamily says whether one of the Service's own addresses is of the family of a.
func hasFamily(own []netip.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(own, func(o netip.Addr) bool { return family(o) == family(a) })
}

// lacksFamily tells of an address that is not served for want of a ClusterIP, unless what is
// wrong with those has been told.
func (r *report) lacksFamily(field string, a netip.Addr, or string) {
	if !r.familyTold {
		r.add(field, "WrongFamily", "%s is not served: the Service has no ClusterIP of %s; give it one, or %s", a, familyName(family(a)), or)
	}
}

// external says whether the type of the Service gives it node ports.
func external(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// balancerIPs are the addresses that a load balancer was given and that nodes answer
// for: host names do not count, nor those in mode Proxy, where traffic comes back by
// way of the balancer.
func balancerIPs(svc *corev1.Service, own []netip.Addr, r *report) (out []origin) {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	for i, in := range svc.Status.LoadBalancer.Ingress {
		field := func(name string) string { return fmt.Sprintf("status.loadBalancer.ingress[%d].%s", i, name) }
		if in.IP == "" || !answeredHere(&in, field, r) {
			continue
		}
		a, wrong := parse(in.IP)
		if wrong != "" {
			r.add(field("ip"), "BadAddress", "%q %s; whatever set it must give an address", in.IP, wrong)
			continue
		}
		if !hasFamily(own, a) {
			r.lacksFamily(field("ip"), a, "whatever set the address must remove it")
			continue
		}
		out = append(out, origin{kind: model.LoadBalancer, addr: a})
	}
	return out
}

// answeredHere reads the mode of a balancer's address; left out it is VIP.
func answeredHere(in *corev1.LoadBalancerIngress, field func(string) string, r *report) bool {
	switch mode := value(in.IPMode); mode {
	case corev1.LoadBalancerIPModeProxy:
		return false
	case "", corev1.LoadBalancerIPModeVIP:
	default:
		r.add(field("ipMode"), "UnknownMode", "%q is no mode and is taken as VIP; whatever set it must say VIP or Proxy", mode)
	}
	return true
}

// frontends are the addresses of one port. An address that is listed twice, say as
// external and as balancer's, is one frontend.
func frontends(p *servicePort, from []origin) (out []model.Frontend) {
	for _, o := range from {
		f := model.Frontend{Kind: o.kind, Addr: o.addr, Port: p.Port, Protocol: p.Protocol, AliasOf: o.aliasOf}
		if o.kind == model.NodePort {
			if f.Port = p.NodePort; f.Port == 0 {
				continue
			}
		}
		if !slices.ContainsFunc(out, func(g model.Frontend) bool { return g.Addr == f.Addr && g.Port == f.Port }) {
			out = append(out, f)
		}
	}
	return out
}
