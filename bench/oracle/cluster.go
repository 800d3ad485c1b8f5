package oracle

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Cluster is all that decides about packets on one node.
type Cluster struct {
	Here     string       // name of the node
	Own      []netip.Addr // addresses that the node has
	Pods     []netip.Addr // addresses of the pods on it
	Nodes    []*corev1.Node
	Services []*corev1.Service // of different ages
	Slices   []*discoveryv1.EndpointSlice
	place    place // where what dice are thrown for has addresses from
}

// zones of the nodes, by name.
func (c *Cluster) zones() map[string]string {
	out := make(map[string]string)
	for _, n := range c.Nodes {
		out[n.Name] = n.Labels["topology.kubernetes.io/zone"]
	}
	return out
}

// node is this node's object; an empty one when there is none.
func (c *Cluster) node() *corev1.Node {
	for _, n := range c.Nodes {
		if n.Name == c.Here {
			return n
		}
	}
	return &corev1.Node{}
}

// primary are the addresses at which node ports are answered: the internal ones of the
// node's object that it really has. An object without any leaves the choice to the node,
// which takes its first address of each family.
func (c *Cluster) primary() (out []netip.Addr) {
	named := false
	for _, a := range c.node().Status.Addresses {
		if ip, ok := address(a.Address); ok && a.Type == corev1.NodeInternalIP {
			named = true
			if slices.Contains(c.Own, ip) {
				out = append(out, ip)
			}
		}
	}
	if named {
		return out
	}
	for _, four := range []bool{true, false} {
		if i := slices.IndexFunc(c.Own, func(a netip.Addr) bool { return a.Is4() == four }); i >= 0 {
			out = append(out, c.Own[i])
		}
	}
	return out
}

// somebodys says whether an address is known to be a node's or an endpoint's, so that no
// Service may have the whole of it as its balancer's.
func (c *Cluster) somebodys(a netip.Addr) bool {
	if slices.Contains(c.Own, a) {
		return true
	}
	for _, n := range c.Nodes {
		for _, text := range n.Status.Addresses {
			if ip, ok := address(text.Address); ok && ip == a {
				return true
			}
		}
	}
	for _, s := range c.Services {
		for _, e := range c.everyEndpoint(s) {
			if e.at.Addr() == a {
				return true
			}
		}
	}
	return false
}

// optedOut says whether the labels of an object leave it to DNS or to another proxy.
func optedOut(labels map[string]string) bool {
	_, headless := labels["service.kubernetes.io/headless"]
	_, other := labels["service.kubernetes.io/service-proxy-name"]
	return headless || other
}

// slicesOf are the slices that name a Service.
func (c *Cluster) slicesOf(s *corev1.Service) (out []*discoveryv1.EndpointSlice) {
	for _, es := range c.Slices {
		if es.Namespace == s.Namespace && es.Labels["kubernetes.io/service-name"] == s.Name {
			out = append(out, es)
		}
	}
	return out
}

// proxied says whether a Service is a proxy's business at all. One whose slices are all
// labelled away is not.
func (c *Cluster) proxied(s *corev1.Service) bool {
	if optedOut(s.Labels) || s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == "None" ||
		len(s.Spec.ClusterIPs) > 0 && s.Spec.ClusterIPs[0] == "None" {
		return false
	}
	hidden := 0
	all := c.slicesOf(s)
	for _, es := range all {
		if optedOut(es.Labels) {
			hidden++
		}
	}
	return len(all) == 0 || hidden < len(all)
}

// address reads an address to which packets can be sent.
func address(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	ok := err == nil && a.Zone() == "" && !a.Is4In6() && !a.IsUnspecified() && !a.IsLoopback() &&
		!a.IsLinkLocalUnicast() && !a.IsMulticast() && text != "255.255.255.255"
	return a, ok
}

// clusterIPs are the Service's own addresses, one for each family that it lists. A family
// that there is not counts as if it were not written.
func clusterIPs(s *corev1.Service) (out []netip.Addr) {
	var families []corev1.IPFamily
	for _, f := range s.Spec.IPFamilies {
		if f == corev1.IPv4Protocol || f == corev1.IPv6Protocol {
			families = append(families, f)
		}
	}
	texts := s.Spec.ClusterIPs
	if len(texts) == 0 {
		texts = []string{s.Spec.ClusterIP}
	}
	for _, text := range texts {
		a, ok := address(text)
		listed := len(families) == 0 || slices.Contains(families, familyOf(a))
		if ok && listed && !hasFamily(out, a) {
			out = append(out, a)
		}
	}
	return out
}

func familyOf(a netip.Addr) corev1.IPFamily {
	if a.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func hasFamily(all []netip.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(all, func(o netip.Addr) bool { return o.Is4() == a.Is4() })
}

// protocolOf reads a protocol; none written means TCP, and an unknown one is "".
func protocolOf(p corev1.Protocol) corev1.Protocol {
	switch p {
	case "", corev1.ProtocolTCP:
		return corev1.ProtocolTCP
	case corev1.ProtocolUDP, corev1.ProtocolSCTP:
		return p
	}
	return ""
}

func isPort(n int32) bool { return n >= 1 && n <= 65535 }

// portsOf are the ports of a Service that make sense: of two with one name, or one number
// and protocol, the first.
func portsOf(s *corev1.Service) (out []corev1.ServicePort) {
	for _, p := range s.Spec.Ports {
		p.Protocol = protocolOf(p.Protocol)
		if !isPort(p.Port) || p.Protocol == "" {
			continue
		}
		if !slices.ContainsFunc(out, func(o corev1.ServicePort) bool {
			return o.Name == p.Name || o.Port == p.Port && o.Protocol == p.Protocol
		}) {
			out = append(out, p)
		}
	}
	return out
}

// Admits says whether the source ranges of a Service let a client call its balancer's
// addresses.
func (c *Cluster) Admits(s *corev1.Service, client netip.Addr) bool { return admits(s, client) }

// admits says whether the source ranges of a Service let a client call its balancer's
// addresses. A family without any entry is open, and so is one with an entry for all of it;
// what cannot be read counts as an entry that admits nobody.
func admits(s *corev1.Service, client netip.Addr) bool {
	entries := false
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		text = strings.TrimSpace(text)
		if strings.Contains(text, ":") == client.Is4() {
			continue
		}
		entries = true
		if p, err := netip.ParsePrefix(text); err == nil && !p.Addr().Is4In6() && (p.Bits() == 0 || p.Contains(client)) {
			return true
		}
	}
	return !entries
}
