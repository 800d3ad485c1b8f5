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
		last.declared = s
		return
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
}

// DeleteService withdraws a Service; one that is not there is no error.
func (c *Compiler) DeleteService(n model.Name) {
	if s := c.services[n]; s != nil {
		c.withdraw(s)
		delete(c.services, n)
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
		p := &s.Ports[i]
		sets := map[bool]*set{}
		for _, f := range p.Frontends {
			if f.Kind != model.ClusterIP {
				continue
			}
			v4 := f.Addr.Is4()
			if sets[v4] == nil {
				sets[v4] = c.prepareSet(out, p, familyChoice(p, f.Addr))
			}
			out.claims = append(out.claims, &claim{
				frontend: c.frontend(keyOf(s.Network, f.Addr, f.Port, f.Protocol)), service: out, set: sets[v4],
			})
		}
	}
	return out
}

func familyChoice(p *model.ServicePort, a netip.Addr) model.FamilyChoice {
	if a.Is4() {
		return p.Families[4]
	}
	return p.Families[6]
}

// prepareSet collects the backends of one port and family: all endpoints are known to
// the tables, so that flows can tell whether theirs still serves; chosen ones are
// offered.
func (c *Compiler) prepareSet(s *service, p *model.ServicePort, choice model.FamilyChoice) *set {
	out := &set{empty: emptyMeans(choice.Internal)}
	chosen := choice.Internal.Endpoints
	for i := range choice.Endpoints {
		e := &choice.Endpoints[i]
		r := ref{c.backend(keyOf(s.declared.Network, e.Addr, e.Port, p.Protocol)), e.Ready || e.Serving}
		s.refs = append(s.refs, r)
		if r.serving {
			out.keep = append(out.keep, r.backend)
		}
		if len(chosen) > 0 && chosen[0].Addr == e.Addr && chosen[0].Port == e.Port { // both are in the same order
			out.members = append(out.members, r.backend)
			chosen = chosen[1:]
		}
	}
	return out
}

// emptyMeans says what becomes of a packet when nothing is chosen: endpoints elsewhere
// make policy Local drop, no endpoint at all refuses.
func emptyMeans(c model.Choice) table.Empty {
	if c.Any && len(c.Endpoints) == 0 {
		return table.Drop
	}
	return table.Refuse
}

// same reports whether nothing that the tables show differs.
func (s *service) same(o *service) bool {
	return s.owner == o.owner && s.declared.Created.Equal(o.declared.Created) && slices.Equal(s.refs, o.refs) &&
		slices.EqualFunc(s.claims, o.claims, func(a, b *claim) bool { return a.frontend == b.frontend && a.set.equal(b.set) })
}
