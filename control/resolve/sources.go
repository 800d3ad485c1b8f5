package resolve

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sources reads who may call the balancer's addresses, by family; a family without entry is
// open to everybody, and so is one with an entry for all of it. What cannot be read closes
// its family to all but the other entries: a slip of the pen must not open a door.
func sources(svc *corev1.Service, r *report) map[int][]netip.Prefix {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || len(svc.Spec.LoadBalancerSourceRanges) == 0 {
		return nil
	}
	out, open := map[int][]netip.Prefix{}, map[int]bool{}
	for i, text := range svc.Spec.LoadBalancerSourceRanges {
		s := strings.TrimSpace(text)
		p, err := netip.ParsePrefix(s)
		if err != nil || p.Addr().Is4In6() {
			r.add(fmt.Sprintf("spec.loadBalancerSourceRanges[%d]", i), "BadPrefix", "%q is no IP prefix and admits nobody; write address/length", text)
			f := guessed(s)
			out[f] = append(out[f], nil...)
			continue
		}
		f := family(p.Addr())
		open[f] = open[f] || p.Bits() == 0
		out[f] = append(out[f], p.Masked())
	}
	for f := range open {
		if open[f] {
			delete(out, f)
		}
	}
	return out
}

// guessed is the family that somebody may have meant.
func guessed(s string) int {
	if strings.Contains(s, ":") {
		return 6
	}
	return 4
}
