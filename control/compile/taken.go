package compile

import (
	"maps"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
)

// spot is an address of a network, whatever the port.
type spot struct {
	network packet.NetworkID
	addr    packet.Addr
}

func (k *key) spot() spot { return spot{k.network, k.addr} }

// resident is who has an address on this node.
type resident struct {
	kind   model.PortKind
	device string
}

// residents are the addresses that are in use on this node. A Service must not take the
// whole of one: it would cut the node or the pod off.
func residents(w *wiring, a *model.Attachments) map[spot]resident {
	ports := map[uint16]resident{}
	for i := range a.Ports {
		p := &a.Ports[i]
		if _, known := ports[p.ID]; !known {
			ports[p.ID] = resident{p.Kind, p.Device}
		}
	}
	out := make(map[spot]resident, len(w.addresses)+2)
	for _, r := range w.addresses {
		out[spot{r.Network, r.Addr}] = ports[r.Port]
	}
	for _, own := range []packet.Addr{w.node4, w.node6} {
		if own != (packet.Addr{}) {
			out[spot{0, own}] = resident{kind: model.PortHost}
		}
	}
	return out
}

// reside replaces the residents, and looks again at the frontends whose address that
// concerns.
func (c *Compiler) reside(next map[spot]resident) {
	if maps.Equal(c.residents, next) {
		return
	}
	was := c.residents
	c.residents = next
	for _, f := range c.frontends {
		at := f.spot()
		if was[at] != next[at] {
			c.touchFrontend(f)
		}
	}
}

// SetNodes replaces the addresses of the nodes of the cluster. A Service that has one of
// them, as external address or of a balancer, has its own ports of it and no others.
func (c *Compiler) SetNodes(addresses map[netip.Addr]bool) {
	if maps.Equal(c.nodes, addresses) {
		return
	}
	was := c.nodes
	c.nodes = addresses
	for _, f := range c.frontends {
		if a := f.addr.Netip(); was[a] != addresses[a] {
			c.touchFrontend(f)
		}
	}
}

// barred reports whether the address that is claimed is in use on this node, so that the
// claim is void. Of the node's own addresses a Service may have single ports, but not as
// its ClusterIP, which is meant to be an address of its own.
func (c *Compiler) barred(l *claim) bool {
	if c.kept(l) || c.answered(l) != "" {
		return true
	}
	r, there := c.residents[l.spot()]
	return there && (r.kind != model.PortHost || l.kind == model.ClusterIP)
}

// narrow reports whether a claim is to the port alone: the rest of the address is a node's
// own business.
func (c *Compiler) narrow(l *claim) bool {
	if l.kind == model.NodePort || l.kind == model.ExternalIP || l.aliasOf.IsValid() {
		return true // whoever may write a Service may write any address there
	}
	r, there := c.residents[l.spot()]
	return there && r.kind == model.PortHost || l.kind != model.ClusterIP && c.elsewhere(l)
}

// countVIPs notes which addresses are those of Services now, and looks again at the
// backends that have become one or are none any more. It comes before backends and
// frontends are settled.
func (c *Compiler) countVIPs() {
	turned := map[spot]bool{}
	for _, f := range c.dirtyFrontends {
		l, at := f.holder, f.spot()
		live := l != nil && !c.narrow(l)
		switch before := c.vips[at]; {
		case live == f.live:
			continue
		case live:
			c.vips[at]++
			turned[at] = turned[at] || before == 0
		case before == 1:
			delete(c.vips, at)
			turned[at] = true
		default:
			c.vips[at]--
		}
		f.live = live
	}
	if len(turned) == 0 {
		return
	}
	for _, b := range c.backends {
		if turned[b.spot()] {
			c.touchBackend(b)
		}
	}
}

// judge notes whether the address of a backend is one of a Service.
func (c *Compiler) judge(b *backend) {
	b.vip = b.refs > 0 && c.vips[b.spot()] > 0
	if b.vip {
		c.looping[b] = struct{}{}
	} else {
		delete(c.looping, b)
	}
}

// refusals names every Service with an address that is one of the node or of a pod, or with a
// port that is kept from it, once for each reason however many of its ports are concerned.
func (c *Compiler) refusals() (out []model.Problem) {
	type cause struct {
		service *service
		reason  string
	}
	barred := map[cause][]*claim{}
	for f := range c.refused {
		for _, l := range f.claims.inOrder() {
			if !c.excluded.service(l.service) && c.barred(l) && !l.aliasOf.IsValid() {
				reason, _ := c.whose(l)
				of := cause{l.service, reason}
				barred[of] = append(barred[of], l)
			}
		}
	}
	for of, claims := range barred {
		out = append(out, c.refusal(of.service, of.reason, claims))
	}
	return out
}

// refusal names the first of the claims that are barred for one reason, and counts the others.
func (c *Compiler) refusal(s *service, reason string, claims []*claim) model.Problem {
	l := slices.MinFunc(claims, func(a, b *claim) int { return a.compare(&b.key) })
	_, whose := c.whose(l)
	more := andMore(l.others(claims), "frontends")
	if c.answered(l) != "" {
		return serviceProblem(s.declared, fieldOf(l.kind), reason,
			"%s is the port of %s, which keeps it, so the Service is not served there%s; give it another number", l.atTheNode(), whose, more)
	}
	instead := "give it an address of the service range"
	if l.kind != model.ClusterIP {
		instead = "give it an address that nobody has"
	}
	return serviceProblem(s.declared, fieldOf(l.kind), reason,
		"%s is the address of %s, which keeps it, so the Service is not served there%s; %s", l.addr, whose, more, instead)
}

// loops names every Service with endpoints that are addresses of Services. A packet to
// one would have to be looked up again and would never arrive.
func (c *Compiler) loops() (out []model.Problem) {
	if len(c.looping) == 0 {
		return nil
	}
	serviceAt := c.serviceAt()
	for _, s := range c.services {
		found := map[*backend]bool{}
		var first *backend
		for _, r := range s.refs {
			if r.vip {
				found[r.backend] = true
				if first == nil || r.compare(&first.key) < 0 {
					first = r.backend
				}
			}
		}
		if first == nil || c.excluded.service(s) {
			continue
		}
		out = append(out, serviceProblem(s.declared, "", "AddressOfService",
			"endpoint %s has the address of Service %s and gets no connections%s; write the addresses of pods into the EndpointSlice, or give that Service another address if this one is a pod's", &first.key, serviceAt(first.spot()), andMore(len(found)-1, "endpoints")))
	}
	return out
}

// serviceAt returns what names the Service that has an address; of several the first by key.
func (c *Compiler) serviceAt() func(spot) model.Name {
	at := make(map[spot]*frontend, len(c.vips))
	for _, f := range c.frontends {
		if was := at[f.spot()]; f.live && (was == nil || f.compare(&was.key) < 0) {
			at[f.spot()] = f
		}
	}
	return func(s spot) model.Name {
		if f := at[s]; f != nil {
			return f.owner.name
		}
		return model.Name{}
	}
}
