package oracle

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Origin is where a packet comes into the node.
type Origin int

const (
	Pod     Origin = iota // a pod of the node
	Node                  // the node itself
	Outside               // the wire: other nodes, their pods, and everybody beyond
)

// Packet asks for something new.
type Packet struct {
	From     Origin
	Source   netip.Addr
	To       netip.AddrPort
	Protocol corev1.Protocol
}

// Class is what becomes of a packet.
type Class int

const (
	Pass    Class = iota // none of a proxy's business
	Forward              // to one of the endpoints
	Refuse               // the client is told at once
	Drop                 // the client hears nothing
)

func (c Class) String() string { return [...]string{"pass", "forward", "refuse", "drop"}[c] }

// Sender is what the endpoint sees as the client.
type Sender int

const (
	Kept     Sender = iota // the client's own address
	ThisNode               // an address of this node
	Called                 // the address that the client called
)

func (s Sender) String() string { return [...]string{"kept", "this node", "called"}[s] }

// Outcome is what must become of a packet.
type Outcome struct {
	Class     Class
	Endpoints []netip.AddrPort // each of which may be chosen, sorted
	Port      *Port            // of which Service it is; nil: of none
}

// Port is a port of a Service in one family, at whichever of its addresses it was called.
type Port struct {
	Service  *corev1.Service
	Port     corev1.ServicePort
	Serving  []netip.AddrPort // endpoints that may keep datagram flows which they have
	Guarded  bool             // the address that was called is restricted to source ranges
	Reminded bool             // clients come back to the endpoint that they had
}

// kind of an address of a Service.
type kind int

const (
	own      kind = iota // ClusterIP
	nodePort             // of this node
	balancer             // from the status
	external             // externalIPs
)

// claim is an address, protocol and port that a Service wants.
type claim struct {
	kind     kind
	at       netip.AddrPort
	protocol corev1.Protocol
	service  *corev1.Service
	port     corev1.ServicePort
	family   netip.Addr // the Service's own address of the family
}

// claims are all that a Service wants. An address that it has twice counts as what it has it
// as first.
func (c *Cluster) claims(s *corev1.Service) (out []claim) {
	if !c.proxied(s) {
		return nil
	}
	owns := clusterIPs(s)
	taken := make(map[claim]bool) // node ports
	for _, p := range portsOf(s) {
		want := func(k kind, a netip.Addr, number int32) {
			i := slices.IndexFunc(owns, func(o netip.Addr) bool { return o.Is4() == a.Is4() })
			twice := slices.ContainsFunc(out, func(l claim) bool {
				return l.at == netip.AddrPortFrom(a, uint16(number)) && l.protocol == p.Protocol
			})
			if i >= 0 && !twice {
				out = append(out, claim{k, netip.AddrPortFrom(a, uint16(number)), p.Protocol, s, p, owns[i]})
			}
		}
		for _, a := range owns {
			want(own, a, p.Port)
		}
		twice := claim{protocol: p.Protocol, at: netip.AddrPortFrom(netip.Addr{}, uint16(p.NodePort))}
		if typed(s) && isPort(p.NodePort) && !taken[twice] {
			taken[twice] = true
			for _, a := range c.primary() {
				want(nodePort, a, p.NodePort)
			}
		}
		for _, a := range balancers(s) {
			want(balancer, a, p.Port)
		}
		for _, text := range s.Spec.ExternalIPs {
			if a, ok := address(text); ok {
				want(external, a, p.Port)
			}
		}
	}
	return out
}

// typed says whether the type of a Service gives it node ports.
func typed(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// balancers are the addresses that a balancer was given and that nodes answer for.
func balancers(s *corev1.Service) (out []netip.Addr) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		a, ok := address(in.IP)
		if ok && (in.IPMode == nil || *in.IPMode != corev1.LoadBalancerIPModeProxy) {
			out = append(out, a)
		}
	}
	return out
}

// void says whether a claim is to what a pod of the node has, or as a ClusterIP to what the
// node has.
func (c *Cluster) void(l *claim) bool {
	return slices.Contains(c.Pods, l.at.Addr()) || l.kind == own && slices.Contains(c.Own, l.at.Addr())
}

// whole says whether the rest of the address belongs to the claim, too.
func (c *Cluster) whole(l *claim) bool {
	return l.kind == own || l.kind == balancer && !c.somebodys(l.at.Addr())
}

// held are the claims that are honoured: of several for the same the oldest Service's, and
// of one Service's the first.
func (c *Cluster) held() (out []claim) {
	byAge := slices.SortedFunc(slices.Values(c.Services), func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	type place struct {
		at       netip.AddrPort
		protocol corev1.Protocol
	}
	has := make(map[place]bool)
	for _, s := range byAge {
		for _, l := range c.claims(s) {
			at := place{l.at, l.protocol}
			if !has[at] && !c.void(&l) {
				has[at] = true
				out = append(out, l)
			}
		}
	}
	return out
}

// wholes are the addresses that are a Service's with every port.
func (c *Cluster) wholes(held []claim) map[netip.Addr]bool {
	wholes := make(map[netip.Addr]bool)
	for i := range held {
		if c.whole(&held[i]) {
			wholes[held[i].at.Addr()] = true
		}
	}
	return wholes
}

// Whole says whether an address is a Service's with every port: the node routes what it
// sends there itself to its proxy.
func (c *Cluster) Whole(a netip.Addr) bool { return c.wholes(c.held())[a] }

// Judge says what must become of a packet that belongs to no flow.
func (c *Cluster) Judge(p Packet) Outcome {
	held := c.held()
	wholes := c.wholes(held)
	for i := range held {
		if l := &held[i]; l.at == p.To && l.protocol == p.Protocol {
			return c.serve(l, p, wholes)
		}
	}
	switch {
	case wholes[p.To.Addr()]:
		return Outcome{Class: Refuse}
	case p.From == Node: // it was routed to Lace as an address of a Service, and is none
		return Outcome{Class: Drop}
	}
	return Outcome{Class: Pass}
}

func (c *Cluster) serve(l *claim, p Packet, wholes map[netip.Addr]bool) Outcome {
	all := c.endpoints(l.service, &l.port, l.family)
	port := &Port{
		Service: l.service, Port: l.port, Guarded: l.kind == balancer && len(l.service.Spec.LoadBalancerSourceRanges) > 0,
		Reminded: l.service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
	}
	for i := range all {
		// What new flows are given to may keep those it has; an address of a Service may not.
		if (all[i].ready || all[i].serving) && !wholes[all[i].at.Addr()] {
			port.Serving = append(port.Serving, all[i].at)
		}
	}
	chosen := c.anywhere(l.service, all)
	if c.local(l, p.From) {
		chosen = c.here(all)
	}
	out := Outcome{Class: Forward, Port: port}
	for _, e := range chosen {
		if !wholes[e.at.Addr()] { // what is an address of a Service itself gets nothing
			out.Endpoints = append(out.Endpoints, e.at)
		}
	}
	slices.SortFunc(out.Endpoints, netip.AddrPort.Compare)
	switch {
	case len(chosen) == 0 && len(pick(all, (*endpoint).usable)) > 0:
		out.Class = Drop // Local, and they are elsewhere
	case len(out.Endpoints) == 0:
		out.Class = Refuse
	case l.kind == balancer && !admits(l.service, p.Source):
		out.Class = Drop
	}
	if out.Class != Forward {
		out.Endpoints = nil
	}
	return out
}

// local says whether policy Local holds: the internal one for ClusterIPs, whoever calls;
// the external one for all other addresses and clients outside alone.
func (c *Cluster) local(l *claim, from Origin) bool {
	if l.kind == own {
		p := l.service.Spec.InternalTrafficPolicy
		return p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal
	}
	return from == Outside && l.service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// Sees says whom the endpoint that was chosen sees as the client: the client itself wherever
// the answer comes back by itself.
func (c *Cluster) Sees(p Packet, chosen netip.Addr) Sender {
	switch {
	case p.From == Outside && !slices.Contains(c.Own, chosen) && !slices.Contains(c.Pods, chosen):
		return ThisNode
	case p.From == Pod && p.Source == chosen, p.From == Node && slices.Contains(c.Own, chosen):
		return Called
	}
	return Kept
}

// Follow says what must become of a further packet of a flow that was given to an endpoint
// when the cluster was another: a connection stays where it is, whatever becomes of the
// endpoint; datagrams go on as long as the endpoint serves and their client is admitted, and
// are something new otherwise. known is false where the rules leave it open: the address is
// another Service's by now. Where it is nobody's the flow has ended, whatever that looks
// like: the outcome's class is then Drop.
func (c *Cluster) Follow(p Packet, was *Port, endpoint netip.AddrPort) (o Outcome, known bool) {
	now := c.Judge(p)
	stays := Outcome{Class: Forward, Endpoints: []netip.AddrPort{endpoint}, Port: now.Port}
	switch {
	case now.Port == nil:
		return Outcome{Class: Drop}, true
	case now.Port.Service.Name != was.Service.Name:
		return Outcome{}, false
	case p.Protocol != corev1.ProtocolUDP:
		return stays, true
	case now.Port.Guarded && !admits(now.Port.Service, p.Source):
		return Outcome{Class: Drop, Port: now.Port}, true
	case slices.Contains(now.Port.Serving, endpoint):
		return stays, true
	}
	return now, true
}
