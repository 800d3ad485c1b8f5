//go:build cluster

package cluster

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/oracle"
)

// question is one packet in a cluster.
type question struct {
	oracle.Packet
	cluster *oracle.Cluster // as who is asked takes it for
	judged  oracle.Outcome
	pods    []netip.Addr // that the node really has
}

func ask(p oracle.Packet, c *oracle.Cluster, pods []netip.Addr) *question {
	return &question{p, c, c.Judge(p), pods}
}

// answered is what must become of it in Lace.
func (q *question) answered() *expected {
	e := &expected{class: q.judged.Class, endpoints: q.judged.Endpoints}
	if q.judged.Port != nil {
		e.reminded = q.judged.Port.Reminded
	}
	there := &oracle.Cluster{Own: q.cluster.Own, Pods: q.pods}
	e.sees = func(to netip.AddrPort) []seen { return []seen{seen(there.Sees(q.Packet, to.Addr()).String())} }
	return e
}

// placed is answered, where the node is.
func (q *question) placed() *expected {
	e := q.answered()
	for _, p := range places {
		p.on(q, e)
	}
	return e
}

// ranged says whether the packet is addressed into a service range.
func (q *question) ranged() bool {
	return slices.ContainsFunc(lab.ServiceRanges, func(p netip.Prefix) bool { return p.Contains(q.To.Addr()) })
}

// own says whether it was addressed to a ClusterIP of the Service.
func (q *question) own() bool {
	return q.judged.Port != nil && slices.Contains(q.judged.Port.Service.Spec.ClusterIPs, q.To.Addr().String())
}

// masqueraded says whether kube-proxy gives packets to this address of the Service a source
// address of the node's: all but those of the node's pods to ClusterIPs, and all to other
// addresses under policy Cluster.
func (q *question) masqueraded() bool {
	if q.own() {
		return q.From != oracle.Pod
	}
	return q.judged.Port.Service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal || q.From == oracle.Node
}

// nodeSeen makes the node the client that is seen by endpoints elsewhere. To those of the node
// itself nothing goes out of it, so that nothing is masqueraded.
func nodeSeen(e *expected) {
	e.sees = func(to netip.AddrPort) []seen {
		if slices.Contains(ofN1, to.Addr()) {
			return []seen{kept}
		}
		return []seen{thisNode}
	}
}

// places are what the oracle does not judge by: which packets a node's routes bring to its
// proxy. Each changes what is expected of Lace.
var places = []struct {
	why string
	on  func(*question, *expected) bool
}{
	{"docs/reference/services.md: an address of a service range that no Service has is dropped, for it is routed to Lace", func(q *question, e *expected) bool {
		if e.class != oracle.Pass || !q.ranged() {
			return false
		}
		e.class = oracle.Drop
		return true
	}},
	{"docs/reference/unsupported.md: what the node sends to an address that is only external, or somebody else's, goes where its routes lead", func(q *question, e *expected) bool {
		if q.From != oracle.Node || q.ranged() || slices.Contains(ofN1, q.To.Addr()) || q.cluster.Whole(q.To.Addr()) {
			return false
		}
		e.class = oracle.Pass
		return true
	}},
	{"docs/reference/services.md: other ports of the node are its own", func(q *question, e *expected) bool {
		if q.From != oracle.Node || q.judged.Port != nil || !slices.Contains(ofN1, q.To.Addr()) {
			return false
		}
		e.class = oracle.Pass
		return true
	}},
	{"docs/explanation/own-node-ports.md: a server on the host network sees the node's alias", func(q *question, e *expected) bool {
		if e.class != oracle.Forward || q.From != oracle.Node || !slices.Contains(ofN1, q.To.Addr()) {
			return false
		}
		was := e.sees
		e.sees = func(to netip.AddrPort) []seen {
			if slices.Contains(ofN1, to.Addr()) {
				return []seen{alias}
			}
			return was(to)
		}
		return true
	}},
}

// views are what kube-proxy takes a cluster for, and is meant to in its way.
var views = []struct {
	name, why string
	of        func(*oracle.Cluster)
}{
	{"a pod's address", "an address of a pod on the node is never a Service's in Lace (services.md); kube-proxy takes it away from the pod", func(c *oracle.Cluster) {
		c.Pods = nil
	}},
	{"slices labelled headless", "a Service all of whose slices are labelled away is nobody's in Lace (services.md); kube-proxy takes it for one without endpoints", func(c *oracle.Cluster) {
		c.Slices = slices.DeleteFunc(slices.Clone(c.Slices), func(s *discoveryv1.EndpointSlice) bool {
			_, headless := s.Labels[corev1.IsHeadlessService]
			return headless
		})
	}},
	{"the other label", "Lace heeds both labels on both kinds of objects (services.md); kube-proxy heeds service-proxy-name on Services and headless on slices alone", func(c *oracle.Cluster) {
		c.Services, c.Slices = slices.Clone(c.Services), slices.Clone(c.Slices)
		for i, s := range c.Services {
			c.Services[i] = s.DeepCopy()
			delete(c.Services[i].Labels, corev1.IsHeadlessService)
		}
		for i, s := range c.Slices {
			c.Slices[i] = s.DeepCopy()
			delete(c.Slices[i].Labels, proxyName)
		}
	}},
	{"PreferClosest", "the annotation lace-cni.io/traffic-distribution is Lace's own (services.md)", func(c *oracle.Cluster) {
		c.Services = slices.Clone(c.Services)
		for i, s := range c.Services {
			c.Services[i] = s.DeepCopy()
			delete(c.Services[i].Annotations, "lace-cni.io/traffic-distribution")
		}
	}},
}

// seenByKubeProxy is a cluster as it takes it for.
func seenByKubeProxy(c *oracle.Cluster) *oracle.Cluster {
	seen := *c
	for _, v := range views {
		v.of(&seen)
	}
	return &seen
}

// viewed names the views that alone change what becomes of a packet.
func (q *question) viewed() (names []string) {
	for _, v := range views {
		alone := *q.cluster
		v.of(&alone)
		if got := alone.Judge(q.Packet); got.Class != q.judged.Class || !slices.Equal(got.Endpoints, q.judged.Endpoints) {
			names = append(names, v.name)
		}
	}
	return names
}

// differences are all else that kube-proxy does otherwise, and is meant to. Each changes what
// Lace does into what kube-proxy does, and says whether it had to.
var differences = []struct {
	name, why string
	on        func(*question, *expected) bool
}{
	{"somebody else's address, from the node", "kube-proxy translates whatever the node sends; to addresses that are only external, or somebody else's, Lace is not on the way (unsupported.md)", func(q *question, e *expected) bool {
		if q.judged.Port == nil || e.class == q.judged.Class {
			return false
		}
		*e = *q.answered()
		return true
	}},
	{"another port of a balancer's address", "is refused by Lace (services.md); kube-proxy passes it on", func(q *question, e *expected) bool {
		if e.class != oracle.Refuse || q.judged.Port != nil || q.ranged() {
			return false
		}
		e.class = oracle.Pass
		return true
	}},
	{"excluded, and no endpoint", "without any endpoint Lace refuses everybody, whatever the source ranges say (services.md); kube-proxy drops whom they exclude first", func(q *question, e *expected) bool {
		if e.class != oracle.Refuse || q.judged.Port == nil || !q.judged.Port.Guarded || q.cluster.Admits(q.judged.Port.Service, q.Source) {
			return false
		}
		e.class = oracle.Drop
		return true
	}},
	{"client outside", "under policy Cluster and at a ClusterIP an endpoint of this node sees the client in Lace (services.md), and the node with kube-proxy", func(q *question, e *expected) bool {
		if e.class != oracle.Forward || q.From != oracle.Outside || !q.masqueraded() {
			return false
		}
		nodeSeen(e)
		return true
	}},
	{"pod to an external address", "pods keep their address towards every Service in Lace (services.md); under policy Cluster kube-proxy gives them the node's", func(q *question, e *expected) bool {
		if e.class != oracle.Forward || q.From != oracle.Pod || !q.masqueraded() {
			return false
		}
		nodeSeen(e)
		return true
	}},
	{"pod to itself", "sees the address that it called in Lace (services.md), and the node's with kube-proxy", func(q *question, e *expected) bool {
		itself := func(a netip.AddrPort) bool { return a.Addr() == q.Source }
		if e.class != oracle.Forward || q.From != oracle.Pod || q.masqueraded() || !slices.ContainsFunc(e.endpoints, itself) {
			return false
		}
		e.sees = func(to netip.AddrPort) []seen {
			if itself(to) {
				return []seen{thisNode}
			}
			return []seen{kept}
		}
		return true
	}},
	{"the node as client", "keeps the address that it sends from in Lace, but for itself as endpoint (services.md); kube-proxy gives it whichever it has on the way", func(q *question, e *expected) bool {
		if e.class != oracle.Forward || q.From != oracle.Node {
			return false
		}
		e.sees = func(netip.AddrPort) []seen { return []seen{kept, thisNode} }
		return true
	}},
}
