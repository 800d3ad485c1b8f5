//go:build cluster

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/oracle"
)

const (
	clustersPerRound  = 6
	packetsPerCluster = 24
)

// round is some clusters at once, on the same nodes and each with addresses of its own, and
// the packets that are sent there.
type round struct {
	namespaces []string
	all        *oracle.Cluster // of all clusters
	packets    []oracle.Packet
}

// newRound throws dice, which fall the same for the same seed, for what is declared; packets
// are asked for when the API server has it.
func (w *world) newRound(seed uint64, n int) *round {
	w.t.Helper()
	dice := rand.New(rand.NewPCG(seed, 0))
	r := &round{}
	nodes := hereToStay(oracle.Generate(dice).Nodes)
	var clusters []*oracle.Cluster
	for i := range clustersPerRound {
		c := oracle.Beside(dice, nodes, (n*clustersPerRound+i)%oracle.Places)
		r.namespaces = append(r.namespaces, fmt.Sprintf("r%d-%d", n, i))
		into(c, r.namespaces[i])
		clusters = append(clusters, c)
	}
	whole := *clusters[0]
	for _, c := range clusters[1:] {
		whole.Services, whole.Slices = append(whole.Services, c.Services...), append(whole.Slices, c.Slices...)
	}
	for _, restriction := range restrictions {
		restriction.on(&whole)
	}
	r.all = &whole
	w.declare(r)
	for _, c := range clusters {
		c.Services, c.Slices = whole.Services, whole.Slices // with the addresses that all have
		for range packetsPerCluster {
			if p := oracle.Ask(dice, c); askable(p, c) {
				r.packets = append(r.packets, p)
			}
		}
	}
	r.packets = append(r.packets, corners(dice, &whole)...)
	return r
}

// hereToStay has n1, with its internal addresses and no others: a kube-proxy ends itself when
// they change.
func hereToStay(nodes []*corev1.Node) []*corev1.Node {
	if len(nodes) == 0 || nodes[0].Name != "n1" {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{}}}
		nodes = append([]*corev1.Node{n}, nodes...)
	}
	nodes[0].Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.30.0.11"}, {Type: corev1.NodeInternalIP, Address: "fd30::11"}}
	return nodes
}

// unasked are packets that are not sent, since they would tell nothing.
var unasked = []struct {
	why string
	is  func(oracle.Packet, *oracle.Cluster) bool
}{
	{"the kernel on which tests run has no SCTP sockets", func(p oracle.Packet, _ *oracle.Cluster) bool {
		return p.Protocol == corev1.ProtocolSCTP
	}},
	{"between hosts on the same side of n1 a packet does not come by", func(p oracle.Packet, _ *oracle.Cluster) bool {
		return beyondN1(p.Source) && beyondN1(p.To.Addr())
	}},
	{"a pod that is its own endpoint, which does not say on which node it is, gets its own packets from kube-proxy as they are, and drops them", func(p oracle.Packet, c *oracle.Cluster) bool {
		return p.From == oracle.Pod && slices.ContainsFunc(c.Slices, func(s *discoveryv1.EndpointSlice) bool {
			return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
				return e.Addresses[0] == p.Source.String() && value(e.NodeName) == "" && forService(c, p, s)
			})
		})
	}},
}

// askable says whether a packet is to be sent.
func askable(p oracle.Packet, c *oracle.Cluster) bool {
	for _, u := range unasked {
		if u.is(p, c) {
			return false
		}
	}
	return true
}

// beyondN1 says whether an address is met from n1 by way of n2.
func beyondN1(a netip.Addr) bool {
	return slices.Contains(onN2, a) || slices.ContainsFunc(podsOfN2, func(p netip.Prefix) bool { return p.Contains(a) })
}

// forService says whether a slice is of the Service that a packet is for.
func forService(c *oracle.Cluster, p oracle.Packet, s *discoveryv1.EndpointSlice) bool {
	port := seenByKubeProxy(c).Judge(p).Port
	return port != nil && port.Service.Namespace == s.Namespace && port.Service.Name == s.Labels[discoveryv1.LabelServiceName]
}

var podsOfN2 = []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24"), netip.MustParsePrefix("fd00:10:244:2::/64")}

// corners are packets that the oracle does not throw dice for: to the node's own node ports,
// which do not leave it, and to pods of the node whose address a Service would have.
func corners(d oracle.Dice, c *oracle.Cluster) (out []oracle.Packet) {
	for _, s := range c.Services {
		wanted := slices.Clone(s.Spec.ExternalIPs)
		for _, in := range s.Status.LoadBalancer.Ingress {
			wanted = append(wanted, in.IP)
		}
		for _, p := range s.Spec.Ports {
			for i := range 2 {
				if p.NodePort != 0 && d.IntN(2) == 0 {
					out = append(out, oracle.Packet{From: oracle.Node, Source: ofN1[i], To: netip.AddrPortFrom(ofN1[i], uint16(p.NodePort)), Protocol: p.Protocol})
				}
			}
			for i, a := range c.Pods {
				if slices.Contains(wanted, a.String()) {
					out = append(out, oracle.Packet{From: oracle.Pod, Source: c.Pods[(i+2)%len(c.Pods)], To: netip.AddrPortFrom(a, uint16(p.Port)), Protocol: p.Protocol})
				}
			}
		}
	}
	return slices.DeleteFunc(out, func(p oracle.Packet) bool { return !askable(p, c) })
}

func inNamespace(namespace, resource string) string {
	return "/api/v1/namespaces/" + namespace + "/" + resource
}

func slicesIn(namespace string) string {
	return "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices"
}

// declare writes a round's objects to the API server, and puts what it has made of them in
// their place.
func (w *world) declare(r *round) {
	w.t.Helper()
	w.nodes(r.all.Nodes)
	for _, n := range r.namespaces {
		w.must(w.API.Create(w.t.Context(), "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, nil))
	}
	var services []*corev1.Service
	for _, s := range r.all.Services {
		made := &corev1.Service{}
		w.must(w.API.Create(w.t.Context(), inNamespace(s.Namespace, "services"), s, made))
		if in := s.Status.LoadBalancer.Ingress; len(in) > 0 {
			status := map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": in}}}
			w.must(w.API.Patch(w.t.Context(), inNamespace(s.Namespace, "services")+"/"+s.Name+"/status", status, made))
		}
		made.ManagedFields, made.CreationTimestamp = nil, metav1.Time{} // none is the older one: they share nothing
		services = append(services, made)
	}
	var all []*discoveryv1.EndpointSlice
	for _, s := range r.all.Slices {
		made := &discoveryv1.EndpointSlice{}
		w.must(w.API.Create(w.t.Context(), slicesIn(s.Namespace), s, made))
		made.ManagedFields = nil
		all = append(all, made)
	}
	r.all.Services, r.all.Slices = services, all
}

// nodes are made what a round says.
func (w *world) nodes(nodes []*corev1.Node) {
	w.t.Helper()
	for _, name := range []string{"n1", "n2", "n3"} {
		at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
		var refused *Error
		if at < 0 {
			if err := w.API.Delete(w.t.Context(), Nodes+"/"+name); !errors.As(err, &refused) || refused.Code != http.StatusNotFound {
				w.must(err)
			}
			continue
		}
		n := nodes[at]
		err := w.API.Create(w.t.Context(), Nodes, n, nil)
		if !errors.As(err, &refused) || refused.Code != http.StatusConflict {
			w.must(err)
		}
		zone := any(nil)
		if z := n.Labels[corev1.LabelTopologyZone]; z != "" {
			zone = z
		}
		w.label(Nodes+"/"+name, corev1.LabelTopologyZone, zone)
		w.must(w.API.Patch(w.t.Context(), Nodes+"/"+name+"/status", map[string]any{"status": map[string]any{"addresses": n.Status.Addresses}}, nil))
	}
}

// mark declares a Service after all that a round has declared, and waits until every stage
// goes by it. Its endpoints have hints, so that whoever goes by it knows the zone of the node.
func (w *world) mark(r *round, stages ...*stage) {
	w.t.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mark"}}
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	made := &corev1.Service{}
	w.must(w.API.Create(w.t.Context(), inNamespace(r.namespaces[0], "services"), s, made))
	es := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(lab.WebTarget))}}}
	es.Name, es.Labels = "mark", map[string]string{discoveryv1.LabelServiceName: "mark"}
	var here, all []netip.AddrPort
	for i, name := range []string{"web-1", "web-2"} {
		zone := fmt.Sprint("z", i+1)
		addr := w.Pod(name).Addr4
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr.String()}, Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}})
		all = append(all, netip.AddrPortFrom(addr, lab.WebTarget))
		if r.all.Nodes[0].Labels[corev1.LabelTopologyZone] == zone {
			here = all[i:]
		}
	}
	if here == nil {
		here = all
	}
	w.must(w.API.Create(w.t.Context(), slicesIn(r.namespaces[0]), es, nil))
	for _, stage := range stages {
		stage.marked(netip.MustParseAddr(made.Spec.ClusterIP), here...)
	}
}

// remove takes back what a round has declared but for its namespaces.
func (w *world) remove(r *round) {
	w.t.Helper()
	for _, n := range r.namespaces {
		w.must(w.API.Delete(w.t.Context(), inNamespace(n, "services")))
		w.must(w.API.Delete(w.t.Context(), slicesIn(n)))
	}
}
