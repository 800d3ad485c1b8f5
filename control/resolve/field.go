package resolve

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// checkFields names values that decide nothing here, but show that somebody means
// something else than what happens.
func checkFields(svc *corev1.Service, r *report) {
	checkFamilyPolicy(svc, r)
	checkDistribution(svc, r)
	checkHealthPort(svc, r)
	if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && !external(svc) && len(svc.Spec.ExternalIPs) == 0 && !r.typeTold {
		r.add("spec.externalTrafficPolicy", "NoEffect", "Local has no effect: the Service is reached by its ClusterIP alone, which internalTrafficPolicy governs; remove it")
	}
}

func checkFamilyPolicy(svc *corev1.Service, r *report) {
	const field = "spec.ipFamilyPolicy"
	n := max(len(svc.Spec.ClusterIPs), len(svc.Spec.IPFamilies))
	switch p := value(svc.Spec.IPFamilyPolicy); {
	case p == "", p == corev1.IPFamilyPolicyPreferDualStack:
	case p == corev1.IPFamilyPolicySingleStack && n > 1:
		r.add(field, "Contradiction", "SingleStack, but the Service has %d families, all of which are served; write PreferDualStack, or remove one", n)
	case p == corev1.IPFamilyPolicyRequireDualStack && n < 2:
		r.add(field, "Contradiction", "RequireDualStack, but the Service has one family, which is served; add an address of the other")
	case p != corev1.IPFamilyPolicySingleStack && p != corev1.IPFamilyPolicyRequireDualStack:
		r.add(field, "UnknownPolicy", "%q is no policy, and the families that have an address are served; write SingleStack, PreferDualStack or RequireDualStack", p)
	}
}

// distributions are the values that the EndpointSlice controller knows; it puts them into
// hints, which are obeyed.
var distributions = []string{corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode}

func checkDistribution(svc *corev1.Service, r *report) {
	if d := svc.Spec.TrafficDistribution; d != nil && !slices.Contains(distributions, *d) {
		r.add("spec.trafficDistribution", "UnknownDistribution", "%q is not known to the EndpointSlice controller, which gives no hints for it; write PreferSameZone or PreferSameNode", *d)
	}
}

func checkHealthPort(svc *corev1.Service, r *report) {
	n := svc.Spec.HealthCheckNodePort
	if _, ok := number(n); !ok && n != 0 {
		r.add("spec.healthCheckNodePort", "BadPort", "%d is no port number; write 1 to 65535, or leave it out", n)
	}
}

// nodePorts takes back the node ports that cannot be: those of a Service whose type gives
// it none, and one that an earlier port has. It tells of those that an API server would have
// allotted, which a folder does not.
func nodePorts(svc *corev1.Service, ports []servicePort, r *report) {
	taken, without := map[portKey]bool{}, []string(nil)
	for i := range ports {
		p := &ports[i]
		field := fmt.Sprintf("spec.ports[%d].nodePort", p.index)
		key := portKey{p.Protocol, p.NodePort}
		switch {
		case p.NodePort == 0:
			if svc.Spec.Ports[p.index].NodePort == 0 {
				without = append(without, field)
			}
		case !external(svc) && r.typeTold:
			p.NodePort = 0
		case !external(svc):
			r.add(field, "NoEffect", "%d is not opened: a Service of this type has no node ports; make it NodePort or LoadBalancer, or remove the number", p.NodePort)
			p.NodePort = 0
		case taken[key]:
			r.add(field, "DuplicatePort", "%d/%s is that of an earlier port already; give each its own", p.NodePort, p.Protocol)
			p.NodePort = 0
		default:
			taken[key] = true
		}
	}
	if allots(svc) && len(without) > 0 {
		r.add(without[0], "NoNodePort", "none is written%s, and nothing here allocates one, so the port has none; %s", others(len(without)-1), orElse(svc))
	}
}

// others says that more ports of the Service are meant, too.
func others(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", nor for another port"
	}
	return fmt.Sprintf(", nor for %d more ports", n)
}

// allots says whether an API server gives every port of the Service a node port.
func allots(svc *corev1.Service) bool {
	balanced := svc.Spec.Type == corev1.ServiceTypeLoadBalancer
	return external(svc) && !(balanced && svc.Spec.AllocateLoadBalancerNodePorts != nil && !*svc.Spec.AllocateLoadBalancerNodePorts)
}

// orElse says what to do about ports without node ports.
func orElse(svc *corev1.Service) string {
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return "write a number, or allocateLoadBalancerNodePorts: false where none is wanted"
	}
	return "write a number, or make the type ClusterIP"
}
