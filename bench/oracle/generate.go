package oracle

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Who there is: for each kind of client addresses of both families, as in the lab. There are
// few of everything, so that Services get into each other's way.
var (
	nodeOwn    = addresses("172.30.0.11", "fd30::11", "192.0.2.11", "2001:db8::11") // the first two are the node's internal ones
	podsHere   = addresses("10.244.1.11", "fd00:10:244:1::11", "10.244.1.12", "fd00:10:244:1::12", "10.244.1.13", "fd00:10:244:1::13")
	otherNodes = addresses("172.30.0.12", "fd30::12", "172.30.0.13", "fd30::13")
	podsThere  = addresses("10.244.2.11", "fd00:10:244:2::11", "10.244.2.12", "fd00:10:244:2::12", "10.244.3.11", "fd00:10:244:3::11")
	beyond     = addresses("198.18.0.5", "2001:db8:5::5", "192.0.2.200", "2001:db8:2::200") // clients outside the cluster
	byHand     = addresses("192.0.2.77", "2001:db8:77::77")                                 // endpoints outside the cluster
)

func addresses(texts ...string) (out []netip.Addr) {
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

// resident is a pod, or something else behind an endpoint address, as every slice describes
// it. Copies differ only in that an older one, of a pod that had the address before, is
// still terminating.
type resident struct {
	addr       netip.Addr
	node, zone *string
	conditions discoveryv1.EndpointConditions
	hints      *discoveryv1.EndpointHints
	before     *discoveryv1.EndpointConditions
}

// Generate throws dice for a cluster.
func Generate(d Dice) *Cluster {
	g := &generator{Dice: d, cluster: newCluster(0)}
	g.nodes()
	return g.populate()
}

// Beside throws dice for other Services and endpoints on nodes that there are. n, below
// Places, says where their addresses and node ports come from: those of each n are apart, so
// that several may be there at once.
func Beside(d Dice, nodes []*corev1.Node, n int) *Cluster {
	c := newCluster(n)
	c.Nodes = nodes
	return (&generator{Dice: d, cluster: c, zones: c.zones()}).populate()
}

func newCluster(n int) *Cluster {
	return &Cluster{Here: "n1", Own: nodeOwn, Pods: podsHere, place: placeOf(n)}
}

// populate throws dice for all but the nodes.
func (g *generator) populate() *Cluster {
	c := g.cluster
	g.repopulate()
	for i := range 1 + g.IntN(4) {
		c.Services = append(c.Services, g.service(i))
	}
	g.slices()
	return c
}

// Change throws dice for what becomes of a cluster: Services go or change, and so do
// endpoints.
func Change(d Dice, c *Cluster) {
	g := &generator{Dice: d, cluster: c, zones: c.zones()}
	var left []*corev1.Service
	for _, s := range c.Services {
		var i int
		_, _ = fmt.Sscanf(s.Name, "s%d", &i)
		switch g.IntN(10) {
		case 1:
			continue
		case 2, 3:
			s = g.service(i)
		}
		left = append(left, s)
	}
	c.Services = left
	if !rarely(g, 4) {
		g.repopulate()
		g.slices()
	}
}

// slices throws dice for all of them: they must agree on who is behind an address.
func (g *generator) slices() {
	g.cluster.Slices = nil
	for _, s := range g.cluster.Services {
		for i := range one(g.Dice, 0, 1, 1, 2, 3) {
			g.cluster.Slices = append(g.cluster.Slices, g.slice(s, i))
		}
	}
}

type generator struct {
	Dice
	cluster   *Cluster
	zones     map[string]string // of nodes
	residents []resident
}

func (g *generator) nodes() {
	g.zones = map[string]string{}
	for i, addrs := range [][]netip.Addr{nodeOwn[:2], otherNodes[:2], otherNodes[2:]} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", 1+i), Labels: map[string]string{}}}
		if z := one(g.Dice, "z1", "z2", "z1", ""); z != "" {
			n.Labels["topology.kubernetes.io/zone"] = z
			g.zones[n.Name] = z
		}
		for _, a := range addrs {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
		if rarely(g, 6) {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: one(g.Dice, corev1.NodeExternalIP, corev1.NodeInternalIP, corev1.NodeHostName), Address: one(g.Dice, "203.0.113.1", "192.0.2.11", "n", "2001:db8::11")})
		}
		if !rarely(g, 20) {
			g.cluster.Nodes = append(g.cluster.Nodes, n)
		}
	}
}

// repopulate throws dice for who is behind endpoint addresses, and in which state.
func (g *generator) repopulate() {
	g.residents = nil
	hinting := g.IntN(4) // 0: nobody, 1: everybody for zones, 2: for both, 3: as it comes
	add := func(node string, addrs ...netip.Addr) {
		for _, a := range addrs {
			g.residents = append(g.residents, g.resident(a, node, hinting))
		}
	}
	add("n1", podsHere...)
	add("n1", nodeOwn[:2]...)
	add("n2", podsThere[:4]...)
	add("n3", podsThere[4:]...)
	add("n2", otherNodes[:2]...)
	add("", byHand...)
}

func (g *generator) resident(a netip.Addr, node string, hinting int) resident {
	r := resident{addr: a}
	if node != "" && !rarely(g, 12) {
		r.node = &node
	}
	if z := g.zones[node]; z != "" {
		r.zone = &z
	}
	r.conditions = one(g.Dice,
		discoveryv1.EndpointConditions{},
		discoveryv1.EndpointConditions{Ready: new(true)},
		discoveryv1.EndpointConditions{Ready: new(true), Terminating: new(false)},
		discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)},
		discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(true)},
		discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)},
		discoveryv1.EndpointConditions{Ready: new(true), Serving: new(g.IntN(2) == 0), Terminating: new(true)}, // publishNotReadyAddresses
		discoveryv1.EndpointConditions{Ready: new(false), Terminating: new(g.IntN(2) == 0)},
	)
	if t := r.conditions.Terminating; (t == nil || !*t) && rarely(g, 5) {
		r.before = &discoveryv1.EndpointConditions{Ready: new(false), Serving: new(g.IntN(2) == 0), Terminating: new(true)}
	}
	r.hints = g.hints(node, hinting)
	return r
}

func (g *generator) hints(node string, hinting int) *discoveryv1.EndpointHints {
	h := &discoveryv1.EndpointHints{}
	if hinting == 3 {
		hinting = g.IntN(3)
	}
	if hinting >= 1 && !rarely(g, 10) {
		h.ForZones = []discoveryv1.ForZone{{Name: one(g.Dice, "z1", "z2", "z1")}}
		if rarely(g, 4) {
			h.ForZones = append(h.ForZones, discoveryv1.ForZone{Name: "z2"})
		}
	}
	if hinting == 2 && !rarely(g, 10) {
		h.ForNodes = []discoveryv1.ForNode{{Name: one(g.Dice, node, "n1", "n2")}}
	}
	if len(h.ForNodes)+len(h.ForZones) == 0 && g.IntN(2) == 0 {
		return nil
	}
	return h
}

func (g *generator) labels(of string) map[string]string {
	l := map[string]string{"app": of}
	if rarely(g, 10) {
		l[one(g.Dice, "service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name")] = one(g.Dice, "", "other")
	}
	return l
}

func (g *generator) slice(s *corev1.Service, i int) *discoveryv1.EndpointSlice {
	es := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.Name, i), Namespace: "demo", Labels: g.labels("slice")}}
	es.Labels["kubernetes.io/service-name"] = s.Name
	es.AddressType = one(g.Dice, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	if rarely(g, 20) {
		es.AddressType = one(g.Dice, discoveryv1.AddressTypeFQDN, "IPv5")
	}
	es.Ports = g.slicePorts(s)
	for _, r := range g.residents {
		if r.addr.Is4() == (es.AddressType == discoveryv1.AddressTypeIPv4) && g.IntN(2) == 0 || rarely(g, 60) {
			es.Endpoints = append(es.Endpoints, g.endpoint(&r))
		}
	}
	if rarely(g, 12) {
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: one(g.Dice, nil, []string{"pod"}, []string{"127.0.0.1"}, []string{"::ffff:10.244.1.2"}, []string{"fe80::1%eth0"})})
	}
	if rarely(g, 12) {
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: []string{one(g.Dice, g.cluster.place.own...).String()}})
	}
	return es
}

// slicePorts are mostly those of the Service.
func (g *generator) slicePorts(s *corev1.Service) (out []discoveryv1.EndpointPort) {
	for _, q := range s.Spec.Ports {
		p := discoveryv1.EndpointPort{Name: &q.Name, Port: one(g.Dice, new(int32(8080)), new(int32(8080)), new(int32(9090)), new(int32(53)))}
		if q.Name == "" && g.IntN(2) == 0 {
			p.Name = nil
		}
		if q.Protocol != "" || g.IntN(2) == 0 {
			p.Protocol = new(q.Protocol)
		}
		switch g.IntN(16) {
		case 1:
			p.Name = new(one(g.Dice, "", "a", "b"))
		case 2:
			p.Protocol = one(g.Dice, nil, new(corev1.ProtocolTCP), new(corev1.ProtocolUDP), new(corev1.Protocol("ICMP")))
		case 3:
			p.Port = one(g.Dice, nil, new(int32(0)), new(int32(70000)))
		case 4:
			continue
		}
		out = append(out, p)
	}
	return out
}

func (g *generator) endpoint(r *resident) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{r.addr.String()}, Conditions: r.conditions, NodeName: r.node, Zone: r.zone, Hints: r.hints}
	if r.before != nil && g.IntN(2) == 0 {
		e.Conditions = *r.before
	}
	if rarely(g, 10) {
		e.Addresses = append(e.Addresses, "10.244.9.9") // which does not count
	}
	return e
}
