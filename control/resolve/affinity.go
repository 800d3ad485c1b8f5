package resolve

import (
	corev1 "k8s.io/api/core/v1"
)

// Bounds and default of the time for which a client keeps its endpoint, in seconds, as the
// API has them.
const (
	defaultAffinity = 10800
	maxAffinity     = 86400
)

// affinity is for how many seconds a client keeps its endpoint; 0: it does not.
func affinity(svc *corev1.Service, r *report) uint32 {
	switch a := svc.Spec.SessionAffinity; a {
	case "", corev1.ServiceAffinityNone:
		return 0
	case corev1.ServiceAffinityClientIP:
	default:
		r.add("spec.sessionAffinity", "UnknownAffinity", "%q is no affinity and is taken as None; write ClientIP or None", a)
		return 0
	}
	c := svc.Spec.SessionAffinityConfig
	if c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
		return defaultAffinity
	}
	if n := *c.ClientIP.TimeoutSeconds; n > 0 && n <= maxAffinity {
		return uint32(n)
	}
	r.add("spec.sessionAffinityConfig.clientIP.timeoutSeconds", "BadTimeout", "%d s is outside 1 to %d, and %d s is used; write a number in between",
		*c.ClientIP.TimeoutSeconds, maxAffinity, defaultAffinity)
	return defaultAffinity
}
