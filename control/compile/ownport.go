package compile

import (
	"maps"
	"slices"

	"lace-cni.io/lace/control/model"
)

// ownPorts are the TCP ports at which Lace itself answers on the node's addresses, and the
// node ports of those numbers. A packet to a node port goes to the Service and to nobody else:
// probes of the agent, and balancers that ask for a Service, would be answered by a stranger.
type ownPorts struct {
	agent   map[uint16]bool
	health  map[uint16]*asked      // by health check port
	doors   map[uint16][]*frontend // with claims of node ports, TCP
	clashes map[uint16]struct{}    // those with both a health check port and doors
}

// asked are the Services of one health check port; there is at least one.
type asked struct {
	services map[model.Name]struct{}
	oldest   *service // nil: not known at the moment
}

func newOwnPorts() ownPorts {
	return ownPorts{
		agent: map[uint16]bool{}, health: map[uint16]*asked{},
		doors: map[uint16][]*frontend{}, clashes: map[uint16]struct{}{},
	}
}

// SetAgentPorts replaces the TCP ports of the node's addresses at which the agent answers, and
// which no Service gets there.
func (c *Compiler) SetAgentPorts(ports []uint16) {
	next := map[uint16]bool{}
	for _, p := range ports {
		next[p] = true
	}
	if maps.Equal(c.own.agent, next) {
		return
	}
	was := c.own.agent
	c.own.agent = next
	for _, f := range c.frontends {
		if was[f.port] != next[f.port] {
			c.touchFrontend(f)
		}
	}
}

// ask notes at which port balancers ask for a Service now, and no longer; 0: at none. It looks
// again at node ports of that number.
func (c *Compiler) ask(n model.Name, was, port uint16) {
	if was != port {
		if of := c.own.health[was]; of != nil {
			if delete(of.services, n); len(of.services) == 0 {
				delete(c.own.health, was)
			}
			of.oldest = nil
			c.touchDoors(was)
		}
	}
	if port == 0 {
		return
	}
	of := c.own.health[port]
	if of == nil {
		of = &asked{services: map[model.Name]struct{}{}}
		c.own.health[port] = of
	}
	of.services[n] = struct{}{}
	of.oldest = nil
	c.touchDoors(port)
}

func (c *Compiler) touchDoors(port uint16) {
	c.compare(port)
	for _, f := range c.own.doors[port] {
		c.touchFrontend(f)
	}
}

// door notes a frontend that has become a node port, or is none any more.
func (c *Compiler) door(f *frontend) {
	if f.protocol != uint8(model.TCP) {
		return
	}
	of := c.own.doors[f.port]
	known := slices.Contains(of, f)
	switch is := f.claims.nodePorts > 0; {
	case is == known:
		return
	case is:
		c.own.doors[f.port] = append(of, f)
	case len(of) == 1:
		delete(c.own.doors, f.port)
	default:
		c.own.doors[f.port] = slices.DeleteFunc(of, func(o *frontend) bool { return o == f })
	}
	c.compare(f.port)
}

// compare notes whether a port is both a health check port and a node port.
func (c *Compiler) compare(port uint16) {
	_, was := c.own.clashes[port]
	if c.own.health[port] != nil && len(c.own.doors[port]) > 0 {
		c.own.clashes[port] = struct{}{}
	} else if was {
		delete(c.own.clashes, port)
		c.disputes.stale = true
	}
}

// oldest is the first by age of the Services with a health check port, nil if there are none.
func (c *Compiler) oldest(port uint16) *service {
	of := c.own.health[port]
	if of == nil {
		return nil
	}
	if of.oldest == nil {
		for n := range of.services {
			if s := c.services[n]; s != nil && (of.oldest == nil || byAge(s.declared, of.oldest.declared) < 0) {
				of.oldest = s
			}
		}
	}
	return of.oldest
}

// answered says who of Lace keeps a port of the node from a claim, in words; empty: nobody.
func (c *Compiler) answered(l *claim) string {
	if l.protocol != uint8(model.TCP) {
		return ""
	}
	if c.own.agent[l.port] && (l.kind == model.NodePort || c.residents[l.spot()].kind == model.PortHost) {
		return "lace-agent (for probes)"
	}
	if l.kind != model.NodePort {
		return ""
	}
	first := c.oldest(l.port) // where that one does not come before the claim, none of the others does
	if first == nil {
		return ""
	}
	if !first.before(l) {
		if _, itself := c.own.health[l.port].services[l.service.declared.Name]; !itself {
			return ""
		}
		first = l.service
	}
	return "Service " + first.owner.name.String() + " (its health check port)"
}

// before reports whether the health check port of the Service comes before a claim of a node
// port of that number: its own claim, that of a younger Service, and, where nothing tells which
// is older, that of one that does not have the port yet and comes later by name.
func (s *service) before(l *claim) bool {
	a, b := l.service.declared, s.declared
	switch f := l.frontend; {
	case a.Name == b.Name, knownOlder(b, a):
		return true
	case knownOlder(a, b), f.id != 0 && (f.owner == l.service.owner || f.owner == owner{}):
		return false
	}
	return byAge(b, a) < 0
}

// unasked names every Service whose health check port is a node port of another one, which
// has had it longer.
func (c *Compiler) unasked() (out []model.Problem) {
	for port := range c.own.clashes {
		var has *service
		for _, f := range c.own.doors[port] {
			if l := f.holder; l != nil && l.kind == model.NodePort {
				has = l.service
				break
			}
		}
		if has == nil {
			continue
		}
		for n := range c.own.health[port].services {
			if s := c.services[n]; s != nil && n != has.owner.name {
				out = append(out, serviceProblem(s.declared, "spec.healthCheckNodePort", "AddressTaken",
					"%d/TCP is a node port of Service %s, which keeps it: balancers that ask there for this Service are answered by that one; give this Service a number of its own", port, has.owner.name))
			}
		}
	}
	return out
}
