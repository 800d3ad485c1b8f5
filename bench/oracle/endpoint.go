package oracle

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoint is one of a Service port, after all slices were read.
type endpoint struct {
	at                          netip.AddrPort
	node, zone                  string
	ready, serving, terminating bool
	forNodes, forZones          []string
}

// draining still takes connections although its pod is on its way out.
func (e *endpoint) draining() bool { return e.serving && e.terminating }

// usable may be given to somebody, if nothing better is there.
func (e *endpoint) usable() bool { return e.ready || e.draining() }

// endpoints are those of a Service port in the family of an address, each address and port
// once: of two copies the one that does not terminate.
func (c *Cluster) endpoints(s *corev1.Service, p *corev1.ServicePort, family netip.Addr) (out []endpoint) {
	for _, es := range c.slicesOf(s) {
		if optedOut(es.Labels) || string(es.AddressType) != string(familyOf(family)) {
			continue
		}
		number := portIn(es, p)
		if number == 0 {
			continue
		}
		for i := range es.Endpoints {
			e, ok := read(&es.Endpoints[i], number, family)
			if !ok {
				continue
			}
			at := slices.IndexFunc(out, func(o endpoint) bool { return o.at == e.at })
			switch {
			case at < 0:
				out = append(out, e)
			case out[at].terminating && !e.terminating:
				out[at] = e
			}
		}
	}
	return out
}

// everyEndpoint is every endpoint of a Service that is proxied, of every port and family.
func (c *Cluster) everyEndpoint(s *corev1.Service) (out []endpoint) {
	if !c.proxied(s) {
		return nil
	}
	for _, own := range clusterIPs(s) {
		for _, p := range portsOf(s) {
			out = append(out, c.endpoints(s, &p, own)...)
		}
	}
	return out
}

// portIn is the number that a slice gives to a Service port: it is found by name and
// protocol, and of two the first counts. 0: it has none.
func portIn(es *discoveryv1.EndpointSlice, p *corev1.ServicePort) uint16 {
	for _, q := range es.Ports {
		name, protocol := "", corev1.ProtocolTCP
		if q.Name != nil {
			name = *q.Name
		}
		if q.Protocol != nil {
			protocol = protocolOf(*q.Protocol)
		}
		if name == p.Name && protocol == p.Protocol && q.Port != nil && isPort(*q.Port) {
			return uint16(*q.Port)
		}
	}
	return 0
}

func read(e *discoveryv1.Endpoint, port uint16, family netip.Addr) (out endpoint, ok bool) {
	if len(e.Addresses) == 0 {
		return out, false
	}
	a, ok := address(e.Addresses[0])
	if !ok || a.Is4() != family.Is4() {
		return out, false
	}
	out = endpoint{at: netip.AddrPortFrom(a, port), ready: true, serving: true}
	if e.NodeName != nil {
		out.node = *e.NodeName
	}
	if e.Zone != nil {
		out.zone = *e.Zone
	}
	for _, c := range []struct {
		written *bool
		means   *bool
	}{{e.Conditions.Ready, &out.ready}, {e.Conditions.Serving, &out.serving}, {e.Conditions.Terminating, &out.terminating}} {
		if c.written != nil {
			*c.means = *c.written
		}
	}
	if e.Hints != nil {
		for _, n := range e.Hints.ForNodes {
			out.forNodes = append(out.forNodes, n.Name)
		}
		for _, z := range e.Hints.ForZones {
			out.forZones = append(out.forZones, z.Name)
		}
	}
	return out, true
}

func pick(all []endpoint, wanted func(*endpoint) bool) (out []endpoint) {
	for i := range all {
		if wanted(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// anywhere is the list of policy Cluster.
func (c *Cluster) anywhere(s *corev1.Service, all []endpoint) []endpoint {
	ready := pick(all, func(e *endpoint) bool { return e.ready })
	if len(ready) == 0 {
		return pick(all, (*endpoint).draining)
	}
	if s.Annotations["lace-cni.io/traffic-distribution"] == "PreferClosest" {
		return c.closest(ready)
	}
	return c.hinted(ready)
}

// here is the list of policy Local.
func (c *Cluster) here(all []endpoint) []endpoint {
	local := pick(all, func(e *endpoint) bool { return e.node != "" && e.node == c.Here })
	if ready := pick(local, func(e *endpoint) bool { return e.ready }); len(ready) > 0 {
		return ready
	}
	return pick(local, (*endpoint).draining)
}

// closest is node, then zone, then anywhere.
func (c *Cluster) closest(ready []endpoint) []endpoint {
	if same := pick(ready, func(e *endpoint) bool { return e.node != "" && e.node == c.Here }); len(same) > 0 {
		return same
	}
	zone := c.zone()
	if same := pick(ready, func(e *endpoint) bool { return zone != "" && e.zone == zone }); len(same) > 0 {
		return same
	}
	return ready
}

func (c *Cluster) zone() string { return c.node().Labels["topology.kubernetes.io/zone"] }

// hinted obeys hints: those for nodes when every one has some and one names this node; else
// those for zones likewise.
func (c *Cluster) hinted(ready []endpoint) []endpoint {
	mine := pick(ready, func(e *endpoint) bool { return slices.Contains(e.forNodes, c.Here) })
	if len(mine) > 0 && len(pick(ready, func(e *endpoint) bool { return len(e.forNodes) == 0 })) == 0 {
		return mine
	}
	zone := c.zone()
	near := pick(ready, func(e *endpoint) bool { return zone != "" && slices.Contains(e.forZones, zone) })
	if len(near) > 0 && len(pick(ready, func(e *endpoint) bool { return len(e.forZones) == 0 })) == 0 {
		return near
	}
	return ready
}
