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
	kind model.FrontendKind
	addr netip.Addr
}

// origins returns every address of the Service whose family it has, ClusterIPs first.
// Addresses of the node carry node ports only.
func origins(svc *corev1.Service, own []netip.Addr, node model.Node, r *report) []origin {
	var out []origin
	for _, a := range own {
		out = append(out, origin{model.ClusterIP, a})
	}
	if external(svc) {
		for _, a := range node.Addresses {
			out = append(out, origin{model.NodePort, a})
		}
	}
	for i, s := range svc.Spec.ExternalIPs {
		a, wrong := parse(s)
		if wrong != "" {
			r.add(fmt.Sprintf("spec.externalIPs[%d]", i), "BadAddress", "%q %s; write an address that is routed to the nodes", s, wrong)
			continue
		}
		out = append(out, origin{model.ExternalIP, a})
	}
	out = append(out, balancerIPs(svc, r)...)
	return slices.DeleteFunc(out, func(o origin) bool {
		return !slices.ContainsFunc(own, func(a netip.Addr) bool { return family(a) == family(o.addr) })
	})
}

// external says whether the type of the Service gives it node ports.
func external(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// balancerIPs are the addresses that a load balancer was given and that nodes answer
// for: host names do not count, nor those in mode Proxy, where traffic comes back by
// way of the balancer.
func balancerIPs(svc *corev1.Service, r *report) (out []origin) {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	for i, in := range svc.Status.LoadBalancer.Ingress {
		if in.IP == "" || value(in.IPMode) == corev1.LoadBalancerIPModeProxy {
			continue
		}
		a, wrong := parse(in.IP)
		if wrong != "" {
			r.add(fmt.Sprintf("status.loadBalancer.ingress[%d].ip", i), "BadAddress", "%q %s; whatever set it must give an address", in.IP, wrong)
			continue
		}
		out = append(out, origin{model.LoadBalancer, a})
	}
	return out
}

// frontends are the addresses of one port. An address that is listed twice, say as
// external and as balancer's, is one frontend.
func frontends(p *servicePort, from []origin) (out []model.Frontend) {
	for _, o := range from {
		f := model.Frontend{Kind: o.kind, Addr: o.addr, Port: p.Port, Protocol: p.Protocol}
		if o.kind == model.NodePort {
			if f.Port = p.nodePort; f.Port == 0 {
				continue
			}
		}
		if !slices.ContainsFunc(out, func(g model.Frontend) bool { return g.Addr == f.Addr && g.Port == f.Port }) {
			out = append(out, f)
		}
	}
	return out
}
