package compile

import (
	"maps"
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
)

// SetReserved replaces the addresses and TCP ports of the API servers. No Service gets one:
// the agent, and the whole node, would lose what tells them of the next change. Of the
// address a Service may have other ports, but never the whole.
func (c *Compiler) SetReserved(places []netip.AddrPort) {
	next, spots := map[netip.AddrPort]bool{}, map[spot]bool{}
	for _, p := range places {
		a := p.Addr().Unmap()
		next[netip.AddrPortFrom(a, p.Port())] = true
		spots[spot{0, packet.AddrFrom(a)}] = true
	}
	if maps.Equal(c.reserved, next) {
		return
	}
	was := c.reservedSpots
	c.reserved, c.reservedSpots = next, spots
	for _, f := range c.frontends {
		if was[f.spot()] || spots[f.spot()] {
			c.touchFrontend(f)
		}
	}
}

// kept reports whether a claim is to what an API server listens on, or as a ClusterIP to
// its address.
func (c *Compiler) kept(l *claim) bool {
	if !c.reservedSpots[l.spot()] {
		return false
	}
	return l.kind == model.ClusterIP ||
		l.protocol == uint8(model.TCP) && c.reserved[netip.AddrPortFrom(l.addr.Netip(), l.port)]
}

// elsewhere reports whether the address of a balancer is known to be somebody's: a node's,
// an API server's, an endpoint's, or one to which the node has a route of its own.
func (c *Compiler) elsewhere(l *claim) bool {
	at := l.spot()
	return c.nodes[l.addr.Netip()] || c.reservedSpots[at] || c.endpoints[at] > 0 || c.hosts[at]
}

// dwell counts an endpoint in (n = 1) or out (n = -1) of its address, and looks again at the
// balancers that have the address when that begins or ends.
func (c *Compiler) dwell(at spot, n int32) {
	before := c.endpoints[at]
	if c.endpoints[at] = before + n; before+n == 0 {
		delete(c.endpoints, at)
	}
	if before == 0 || before+n == 0 {
		c.touchBalancers(at)
	}
}

func (c *Compiler) touchBalancers(at spot) {
	for f := range c.balancers[at] {
		c.touchFrontend(f)
	}
}

// balance notes a frontend that has become a balancer's, or is none any more.
func (c *Compiler) balance(f *frontend) {
	at := f.spot()
	if f.claims.balanced > 0 {
		if c.balancers[at] == nil {
			c.balancers[at] = map[*frontend]struct{}{}
		}
		c.balancers[at][f] = struct{}{}
		return
	}
	if delete(c.balancers[at], f); len(c.balancers[at]) == 0 {
		delete(c.balancers, at)
	}
}

// rehost replaces the addresses to which the node has host routes of somebody else.
func (c *Compiler) rehost(w *wiring) {
	next := map[spot]bool{}
	for i := range w.routes {
		if r := &w.routes[i]; r.Bits == 128 {
			next[spot{r.Network, r.Prefix}] = true
		}
	}
	was := c.hosts
	c.hosts = next
	for at := range c.balancers {
		if was[at] != next[at] {
			c.touchBalancers(at)
		}
	}
}
