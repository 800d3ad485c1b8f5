package resolve

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// LabelProxyName on a Service or an EndpointSlice says that another proxy serves it.
const LabelProxyName = "service.kubernetes.io/service-proxy-name"

// Words for why a Service is not proxied. None of them is a Problem: the object asks
// for it.
const (
	ExternalName = "external-name" // DNS answers with another name
	Headless     = "headless"      // DNS answers with the endpoints
	OtherProxy   = "other-proxy"   // labelled for another proxy
)

// OptOut says why the Service is not proxied, or "" when it is.
//
// The labels count whatever their value, and may come and go at any time. On a slice
// they hide that slice; a Service all of whose slices are labelled is withdrawn whole,
// while a Service without any slice is proxied and has no endpoint.
func OptOut(svc *corev1.Service, slices []*discoveryv1.EndpointSlice) string {
	if w := labelled(svc.Labels); w != "" {
		return w
	}
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return ExternalName
	case svc.Spec.ClusterIP == corev1.ClusterIPNone,
		len(svc.Spec.ClusterIPs) > 0 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone:
		return Headless
	}
	word := ""
	for _, s := range slices {
		if word = labelled(s.Labels); word == "" {
			return ""
		}
	}
	return word
}

func labelled(labels map[string]string) string {
	if _, ok := labels[LabelProxyName]; ok {
		return OtherProxy
	}
	if _, ok := labels[corev1.IsHeadlessService]; ok {
		return Headless
	}
	return ""
}
