package resolve

import (
	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
)

// healthPort is where balancers ask whether this node has endpoints of the Service. Only
// they, and only under Local, need to know.
func healthPort(svc *corev1.Service, s *model.Service) uint16 {
	if s.Type != string(corev1.ServiceTypeLoadBalancer) || s.ExternalPolicy != model.PolicyLocal {
		return 0
	}
	if n, ok := number(svc.Spec.HealthCheckNodePort); ok {
		return n
	}
	return 0 // what is wrong with it is told by checkHealthPort
}
