package compile

import (
	"bytes"
	"cmp"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// place is a prefix of a network: where an address or a route leads. An address comes
// before a route of the same length.
type place struct {
	network packet.NetworkID
	prefix  packet.Addr
	bits    uint8
	route   bool
}

func addressPlace(a *table.Address) place {
	return place{network: a.Network, prefix: a.Addr, bits: 128}
}

func routePlace(r *table.Route) place {
	return place{network: r.Network, prefix: r.Prefix, bits: r.Bits, route: true}
}

func (p *place) compare(o *place) int {
	return cmp.Or(cmp.Compare(p.network, o.network), bytes.Compare(p.prefix[:], o.prefix[:]), cmp.Compare(p.bits, o.bits))
}

// covers reports whether every address of o is one of p.
func (p *place) covers(o *place) bool {
	if p.network != o.network || p.bits > o.bits {
		return false
	}
	whole, rest := p.bits/8, p.bits%8
	if !bytes.Equal(p.prefix[:whole], o.prefix[:whole]) {
		return false
	}
	return rest == 0 || (p.prefix[whole]^o.prefix[whole])>>(8-rest) == 0
}

// reach is where every prefix leads.
type reach map[place]uint16

func reachOf(addresses []table.Address, routes []table.Route) reach {
	out := make(reach, len(addresses)+len(routes))
	for i := range addresses {
		out[addressPlace(&addresses[i])] = addresses[i].Port
	}
	for i := range routes {
		out[routePlace(&routes[i])] = routes[i].Port
	}
	return out
}

// lookup is where p led, as a whole or as part of a longer stretch; 0: nowhere.
func (r reach) lookup(p place) (port uint16) {
	best := -1
	for q, to := range r {
		n := int(q.bits) * 2
		if !q.route {
			n++
		}
		if n > best && q.covers(&p) {
			best, port = n, to
		}
	}
	return port
}

// deserted returns the ports through which some packet went before and does not go now.
func (before reach) deserted(now reach) map[uint16]bool {
	out := map[uint16]bool{}
	for p, port := range before {
		if now[p] != port {
			out[port] = true
		}
	}
	for p, port := range now {
		if _, known := before[p]; known {
			continue
		}
		if was := before.lookup(p); was != port {
			out[was] = true
		}
	}
	delete(out, 0)
	return out
}
