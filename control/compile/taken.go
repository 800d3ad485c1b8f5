package compile

import (
	"fmt"
	"maps"
	"net/netip"

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
		l, at := c.holder(f), f.spot()
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

// refusals names every Service with an address that is one of the node or of a pod,
// once however many of its ports are concerned.
func (c *Compiler) refusals() (out []model.Problem) {
	first := map[*service]*claim{}
	for f := range c.refused {
		for _, l := range f.claims {
			if was := first[l.service]; c.barred(l) && !l.aliasOf.IsValid() && (was == nil || l.compare(&was.key) < 0) {
				first[l.service] = l
			}
		}
	}
	for s, l := range first {
		if c.excluded.service(s) {
			continue
		}
		reason, whose := c.whose(l)
		if c.answered(l) != "" {
			out = append(out, serviceProblem(s.declared, fieldOf(l.kind), reason,
				"%s is the port of %s, which keeps it, so the Service is not served there; give it another number", &l.key, whose))
			continue
		}
		instead := "give it an address of the service range"
		if l.kind != model.ClusterIP {
			instead = "give it an address that nobody has"
		}
		out = append(out, serviceProblem(s.declared, fieldOf(l.kind), reason,
			"%s is the address of %s, which keeps it, so the Service is not served there; %s", l.addr, whose, instead))
	}
	return out
}

// loops names every Service with endpoints that are addresses of Services. A packet to
// one would have to be looked up again and would never arrive.
func (c *Compiler) loops() (out []model.Problem) {
	if len(c.looping) == 0 {
		return nil
	}
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
		more := ""
		if n := len(found) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more of its endpoints)", n)
		}
		out = append(out, serviceProblem(s.declared, "", "AddressOfService",
			"endpoint %s has the address of Service %s and gets no connections%s; write the addresses of pods into the EndpointSlice", &first.key, c.serviceAt(first.spot()), more))
	}
	return out
}

// serviceAt names the Service that has an address; of several the first by key.
func (c *Compiler) serviceAt(at spot) string {
	var found *frontend
	for _, f := range c.frontends {
		if f.live && f.spot() == at && (found == nil || f.compare(&found.key) < 0) {
			found = f
		}
	}
	if found == nil {
		return "unknown"
	}
	return found.owner.name.String()
}
