package compile

import (
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// service is a Service as the tables want it.
type service struct {
	declared *model.Service
	owner    owner
	claims   []*claim
	refs     []ref
}

// SetService adds a Service or replaces the one of that name. The Service must not be
// changed afterwards.
func (c *Compiler) SetService(s *model.Service) {
	c.note(s)
	next := c.prepare(s)
	last := c.services[s.Name]
	if last != nil && last.same(next) {
		was := last.declared.HealthPort
		last.declared = s
		if was != s.HealthPort {
			c.ask(s.Name, was, s.HealthPort)
		}
		return
	}
	was := uint16(0)
	if last != nil {
		was = last.declared.HealthPort
	}
	// In before out: what both have must not be let go in between.
	for _, r := range next.refs {
		c.hold(r, 1)
	}
	if last != nil {
		c.withdraw(last)
	}
	for _, l := range next.claims {
		c.link(l)
	}
	c.services[s.Name] = next
	c.count(next, 1)
	c.ask(s.Name, was, s.HealthPort)
}

// DeleteService withdraws a Service; one that is not there is no error.
func (c *Compiler) DeleteService(n model.Name) {
	if s := c.services[n]; s != nil {
		c.withdraw(s)
		delete(c.services, n)
		c.ask(n, s.declared.HealthPort, 0)
		delete(c.notices, n)
	}
}

func (c *Compiler) withdraw(s *service) {
	for _, l := range s.claims {
		c.unlink(l)
	}
	for _, r := range s.refs {
		c.hold(r, -1)
	}
	c.count(s, -1)
}

// prepare translates a Service without letting anything know of it.
func (c *Compiler) prepare(s *model.Service) *service {
	out := &service{declared: s, owner: owner{s.Name, s.UID}}
	if packet.NetworkID(s.Network) > packet.MaxNetworkID {
		return out
	}
	for i := range s.Ports {
		c.preparePort(out, &s.Ports[i])
	}
	return out
}

// offerKey tells offers of one port apart: by family, and by what governs them.
type offerKey struct {
	family int
	kind   model.FrontendKind
}

// preparePort collects the backends of one port, and what each of its frontends gives.
// Frontends that give the same share it.
func (c *Compiler) preparePort(s *service, p *model.ServicePort) {
	backends, offers := map[int]*endpointBackends{}, map[offerKey]*offer{}
	for _, f := range p.Frontends {
		k := offerKey{familyOf(f.Addr), f.Kind}
		if k.kind == model.ExternalIP { // as a node port
			k.kind = model.NodePort
		}
		if offers[k] == nil {
			choice := p.Families[k.family]
			if backends[k.family] == nil {
				backends[k.family] = c.prepareBackends(s, p, choice.Endpoints)
			}
			offers[k] = offerTo(s.declared, p, k, &choice, backends[k.family])
		}
		s.claims = append(s.claims, &claim{
			frontend: c.frontend(keyOf(s.declared.Network, f.Addr, f.Port, f.Protocol)),
			kind:     f.Kind, turn: int32(len(s.claims)), aliasOf: f.AliasOf, service: s, offer: offers[k],
		})
	}
}

func offerTo(s *model.Service, p *model.ServicePort, k offerKey, choice *model.FamilyChoice, of *endpointBackends) *offer {
	o := offerOf(k.kind, choice, of)
	o.sources = sourcesOf(s, k.kind, k.family)
	if o.affinity = min(s.Affinity, table.MaxAffinity); o.affinity > 0 {
		o.session = sessionOf(s, p, k.family)
	}
	return o
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// prepareBackends makes all endpoints of one port and family known to the tables, so that
// flows can tell whether theirs still serves.
func (c *Compiler) prepareBackends(s *service, p *model.ServicePort, endpoints []model.Endpoint) *endpointBackends {
	out := &endpointBackends{endpoints: endpoints, backends: make([]*backend, 0, len(endpoints))}
	s.refs = slices.Grow(s.refs, len(endpoints))
	for i := range endpoints {
		e := &endpoints[i]
		r := ref{c.backend(keyOf(s.declared.Network, e.Addr, e.Port, p.Protocol)), e.Ready || e.Serving}
		s.refs = append(s.refs, r)
		out.backends = append(out.backends, r.backend)
	}
	out.keep = serving(out.backends, s.refs[len(s.refs)-len(endpoints):])
	return out
}

// serving are the backends that may keep flows: most often all, which then is the same list.
func serving(backends []*backend, refs []ref) []*backend {
	if !slices.ContainsFunc(refs, func(r ref) bool { return !r.serving }) {
		return backends
	}
	var out []*backend
	for _, r := range refs {
		if r.serving {
			out = append(out, r.backend)
		}
	}
	return out
}

// same reports whether nothing that the tables show differs.
func (s *service) same(o *service) bool {
	return s.owner == o.owner && s.declared.Created.Equal(o.declared.Created) && slices.Equal(s.refs, o.refs) &&
		slices.EqualFunc(s.claims, o.claims, func(a, b *claim) bool {
			return a.frontend == b.frontend && a.kind == b.kind && a.aliasOf == b.aliasOf && a.offer.equal(b.offer)
		})
}
