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
	health  map[uint16]map[model.Name]struct{} // Services whose health check port it is
	doors   map[uint16][]*frontend             // with claims of node ports, TCP
	clashes map[uint16]struct{}                // those with both a health check port and doors
}

func newOwnPorts() ownPorts {
	return ownPorts{
		agent: map[uint16]bool{}, health: map[uint16]map[model.Name]struct{}{},
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
	for port := range c.own.doors {
		if was[port] != next[port] {
			c.touchDoors(port)
		}
	}
}

// ask notes at which port balancers ask for a Service now, and no longer; 0: at none. It looks
// again at node ports of that number.
func (c *Compiler) ask(n model.Name, was, port uint16) {
	if was != port {
		if of := c.own.health[was]; of != nil {
			if delete(of, n); len(of) == 0 {
				delete(c.own.health, was)
			}
			c.touchDoors(was)
		}
	}
	if port == 0 {
		return
	}
	if c.own.health[port] == nil {
		c.own.health[port] = map[model.Name]struct{}{}
	}
	c.own.health[port][n] = struct{}{}
	c.touchDoors(port)
}

func (c *Compiler) touchDoors(port uint16) {
	c.own.compare(port)
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
	switch is := slices.ContainsFunc(f.claims, func(l *claim) bool { return l.kind == model.NodePort }); {
	case is == known:
		return
	case is:
		c.own.doors[f.port] = append(of, f)
	case len(of) == 1:
		delete(c.own.doors, f.port)
	default:
		c.own.doors[f.port] = slices.DeleteFunc(of, func(o *frontend) bool { return o == f })
	}
	c.own.compare(f.port)
}

func (o *ownPorts) compare(port uint16) {
	if len(o.health[port]) > 0 && len(o.doors[port]) > 0 {
		o.clashes[port] = struct{}{}
	} else {
		delete(o.clashes, port)
	}
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
	first := ""
	for n := range c.own.health[l.port] {
		if s := c.services[n]; s != nil && s.before(l) && (first == "" || n.String() < first) {
			first = n.String()
		}
	}
	if first == "" {
		return ""
	}
	return "Service " + first + " (its health check port)"
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
			if l := c.holder(f); l != nil && l.kind == model.NodePort {
				has = l.service
				break
			}
		}
		if has == nil {
			continue
		}
		for n := range c.own.health[port] {
			if s := c.services[n]; s != nil && n != has.owner.name {
				out = append(out, serviceProblem(s.declared, "spec.healthCheckNodePort", "AddressTaken",
					"%d/TCP is a node port of Service %s, which keeps it: balancers that ask there for this Service are answered by that one; give this Service a number of its own", port, has.owner.name))
			}
		}
	}
	return out
}
