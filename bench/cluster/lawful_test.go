//go:build cluster

package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/oracle"
)

// restrictions are what keeps a cluster for which dice were thrown from being put into a
// lab as it is, each with what is done about it.
var restrictions = []struct {
	why string
	on  func(*oracle.Cluster)
}{
	{"the API server refuses odd types, and fields that the type does not have", func(c *oracle.Cluster) { each(c.Services, lawfulType) }},
	{"the API server refuses odd ports and wants names for several", lawfulPorts},
	{"the API server gives a ClusterIP and a node port to one Service only", ownAddresses},
	{"the API server refuses slices that contradict themselves", func(c *oracle.Cluster) { each(c.Slices, lawfulSlice) }},
	{"which of two Services has an address and port is told by no rule of kube-proxy's: whoever its map yields last", oneHolder},
	{"the API server refuses what is no address, no range and no policy", func(c *oracle.Cluster) { each(c.Services, lawfulFields) }},
	{"an endpoint with the address of a Service is nobody's in Lace, and in kube-proxy whatever its other rules do with what they have just translated", noServiceAsEndpoint},
}

func each[T any](all []*T, do func(*T)) {
	for _, v := range all {
		do(v)
	}
}

// into puts a cluster's objects into a namespace.
func into(c *oracle.Cluster, namespace string) {
	for _, s := range c.Services {
		s.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Namespace: namespace, Labels: s.Labels, Annotations: s.Annotations}
	}
	for _, s := range c.Slices {
		s.Namespace = namespace
	}
}

func typed(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

func lawfulType(s *corev1.Service) {
	spec := &s.Spec
	known := []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName}
	if !slices.Contains(known, spec.Type) {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		s.Spec = corev1.ServiceSpec{Type: spec.Type, ExternalName: "pod.example.org", Ports: spec.Ports}
		s.Status = corev1.ServiceStatus{}
	}
	if spec.ClusterIP == corev1.ClusterIPNone && typed(s) {
		spec.ClusterIP = ""
	}
	if !typed(s) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status, spec.LoadBalancerSourceRanges = corev1.ServiceStatus{}, nil
	}
}

// lawfulPorts gives the port without a name one where there are several, in slices too.
func lawfulPorts(c *oracle.Cluster) {
	for _, s := range c.Services {
		var ports []corev1.ServicePort
		for _, p := range s.Spec.Ports {
			if p.Protocol == "" {
				p.Protocol = corev1.ProtocolTCP
			}
			twice := slices.ContainsFunc(ports, func(o corev1.ServicePort) bool {
				return o.Name == p.Name || o.Port == p.Port && o.Protocol == p.Protocol
			})
			if !twice && p.Protocol != "ICMP" && p.Port > 0 && p.Port < 65536 {
				ports = append(ports, p)
			}
		}
		if len(ports) == 0 {
			ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}
		}
		s.Spec.Ports = ports
		if len(ports) == 1 {
			continue
		}
		for i := range ports {
			if ports[i].Name == "" {
				ports[i].Name = "c"
			}
		}
		for _, es := range c.Slices {
			for i := range es.Ports {
				if n := es.Ports[i].Name; es.Namespace == s.Namespace && es.Labels[discoveryv1.LabelServiceName] == s.Name && (n == nil || *n == "") {
					es.Ports[i].Name = new("c")
				}
			}
		}
	}
}

// ownAddresses leaves to the API server what another Service has, or what is none.
func ownAddresses(c *oracle.Cluster) {
	addresses, ports := map[string]bool{}, map[int32]*corev1.Service{}
	for _, s := range c.Services {
		spec := &s.Spec
		for i, p := range spec.Ports {
			had := ports[p.NodePort]
			twice := slices.ContainsFunc(spec.Ports[:i], func(o corev1.ServicePort) bool {
				return o.NodePort == p.NodePort && (o.Protocol == p.Protocol || o.Port != p.Port)
			})
			if p.NodePort < 30000 || p.NodePort > 32767 || had != nil && had != s || twice {
				spec.Ports[i].NodePort = 0
				continue
			}
			ports[p.NodePort] = s
		}
		if spec.Type == corev1.ServiceTypeExternalName || spec.ClusterIP == corev1.ClusterIPNone {
			spec.ClusterIPs, spec.IPFamilies = nil, nil
			continue
		}
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		free := !slices.ContainsFunc(spec.ClusterIPs, func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err != nil || addresses[text] || !slices.ContainsFunc(lab.ServiceRanges, func(p netip.Prefix) bool { return p.Contains(a) })
		})
		spec.IPFamilies, spec.IPFamilyPolicy = nil, new(corev1.IPFamilyPolicySingleStack)
		if len(spec.ClusterIPs) == 2 {
			spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		}
		if !free {
			spec.ClusterIPs = nil
		}
		spec.ClusterIP = ""
		for i, text := range spec.ClusterIPs {
			if addresses[text] = true; i == 0 {
				spec.ClusterIP = text
			}
		}
	}
}

func lawfulFields(s *corev1.Service) {
	spec := &s.Spec
	if p := spec.InternalTrafficPolicy; p != nil && *p == "Odd" {
		spec.InternalTrafficPolicy = nil
	}
	if spec.SessionAffinity == "Odd" {
		spec.SessionAffinity = ""
	}
	spec.ExternalIPs = slices.DeleteFunc(spec.ExternalIPs, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err != nil || a.IsLoopback()
	})
	external := typed(s) || len(spec.ExternalIPs) > 0
	if spec.ExternalTrafficPolicy == "Odd" || !external {
		spec.ExternalTrafficPolicy = ""
	}
	spec.LoadBalancerSourceRanges = slices.DeleteFunc(spec.LoadBalancerSourceRanges, func(text string) bool {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		return err != nil || p.Addr().Is4In6()
	})
	s.Status.LoadBalancer.Ingress = slices.DeleteFunc(s.Status.LoadBalancer.Ingress, func(in corev1.LoadBalancerIngress) bool {
		_, err := netip.ParseAddr(in.IP)
		return in.Hostname == "" && err != nil
	})
}

func lawfulSlice(es *discoveryv1.EndpointSlice) {
	if es.AddressType == "IPv5" {
		es.AddressType = discoveryv1.AddressTypeIPv6
	}
	var ports []discoveryv1.EndpointPort
	for _, p := range es.Ports {
		if p.Port != nil && (*p.Port < 1 || *p.Port > 65535) {
			p.Port = nil
		}
		if p.Protocol != nil && (*p.Protocol == "" || *p.Protocol == "ICMP") {
			p.Protocol = nil
		}
		if !slices.ContainsFunc(ports, func(o discoveryv1.EndpointPort) bool { return value(o.Name) == value(p.Name) }) {
			ports = append(ports, p)
		}
	}
	es.Ports = ports
	if es.AddressType == discoveryv1.AddressTypeFQDN {
		es.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"pod.example.org"}}}
	}
	es.Endpoints = slices.DeleteFunc(es.Endpoints, func(e discoveryv1.Endpoint) bool {
		a, err := netip.ParseAddr(append(e.Addresses, "")[0])
		odd := err != nil || a.IsLoopback() || a.IsLinkLocalUnicast() || a.Is4In6() || a.Is4() != (es.AddressType == discoveryv1.AddressTypeIPv4)
		return odd && es.AddressType != discoveryv1.AddressTypeFQDN
	})
	for i := range es.Endpoints {
		e := &es.Endpoints[i]
		if es.AddressType == discoveryv1.AddressTypeIPv6 {
			e.Addresses = e.Addresses[:1]
		}
		e.Hints = lawfulHints(e.Hints)
	}
}

func lawfulHints(h *discoveryv1.EndpointHints) *discoveryv1.EndpointHints {
	if h == nil {
		return nil
	}
	out := &discoveryv1.EndpointHints{}
	for _, z := range h.ForZones {
		if !slices.Contains(out.ForZones, z) {
			out.ForZones = append(out.ForZones, z)
		}
	}
	for _, n := range h.ForNodes {
		if n.Name != "" {
			out.ForNodes = append(out.ForNodes, n)
		}
	}
	return out
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// oneHolder leaves an external address to the first Service that has it on one of its ports.
func oneHolder(c *oracle.Cluster) {
	taken := map[string]bool{}
	take := func(s *corev1.Service, address string) (had bool) {
		for _, p := range s.Spec.Ports {
			k := fmt.Sprint(address, p.Port, p.Protocol)
			had, taken[k] = had || taken[k], true
		}
		return had
	}
	for _, s := range c.Services {
		for _, ip := range s.Spec.ClusterIPs {
			take(s, ip)
		}
	}
	for _, s := range c.Services {
		s.Spec.ExternalIPs = slices.DeleteFunc(s.Spec.ExternalIPs, func(ip string) bool { return take(s, ip) })
		in := &s.Status.LoadBalancer
		in.Ingress = slices.DeleteFunc(in.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP != "" && take(s, i.IP) })
	}
}

func noServiceAsEndpoint(c *oracle.Cluster) {
	for _, es := range c.Slices {
		es.Endpoints = slices.DeleteFunc(es.Endpoints, func(e discoveryv1.Endpoint) bool {
			a, err := netip.ParseAddr(e.Addresses[0])
			return err == nil && slices.ContainsFunc(lab.ServiceRanges, func(p netip.Prefix) bool { return p.Contains(a) })
		})
	}
}
