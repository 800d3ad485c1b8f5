package compile

import (
	"maps"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// assemble writes all records out, in the order of their ids.
func (c *Compiler) assemble() {
	t := &c.contents
	t.Backends = t.Backends[:0]
	for _, b := range c.backendIDs.holders {
		if b != nil {
			t.Backends = append(t.Backends, b.record())
		}
	}
	t.Frontends, t.BackendIDs, t.Ranges = t.Frontends[:0], t.BackendIDs[:0], t.Ranges[:0]
	clear(c.listed)
	clear(c.external)
	for _, f := range c.frontendIDs.holders {
		if f != nil {
			c.assembleFrontend(f)
		}
	}
	t.Ports, t.Addresses, t.Routes = c.published.ports, c.published.addresses, c.published.routes
	t.Settings = c.publishedSettings
}

// External lists the addresses that are no ClusterIPs and that are Services' whole in the
// last snapshot, sorted.
func (c *Compiler) External() []netip.Addr {
	return slices.SortedFunc(maps.Keys(c.external), netip.Addr.Compare)
}

// assembleFrontend writes one frontend.
func (c *Compiler) assembleFrontend(f *frontend) {
	l := f.holder
	of, placed := c.placed(l)
	if !placed {
		return
	}
	r := table.Frontend{
		ID: f.id, Network: f.network, Addr: f.addr, Port: f.port, Protocol: f.protocol, Generation: f.generation,
		Session: l.offer.session, Affinity: l.offer.affinity, AliasOf: of,
	}
	switch {
	case c.narrow(l):
		r.Flags |= table.Narrow
	case l.kind != model.ClusterIP:
		c.external[f.addr.Netip()] = true
	}
	if l.offer.sources.restricted {
		r.Flags |= table.Restricted
	}
	lists := c.listsOf(l.offer)
	r.Inside, r.Outside, r.Keep, r.Sources = lists.inside, lists.outside, lists.keep, lists.sources
	c.contents.Frontends = append(c.contents.Frontends, r)
}

// lists is where the lists of an offer are in the snapshot that is being put together.
type lists struct {
	inside, outside table.Set
	keep, sources   table.Run
}

// listsOf writes the lists of an offer once, however many frontends give it, and equal ones
// of it once.
func (c *Compiler) listsOf(o *offer) lists {
	if at, there := c.listed[o]; there {
		return at
	}
	inside := c.list(o.inside.members)
	outside, keep := inside, inside
	if !slices.Equal(o.outside.members, o.inside.members) {
		outside = c.list(o.outside.members)
	}
	switch {
	case slices.Equal(o.keep, o.inside.members):
	case slices.Equal(o.keep, o.outside.members):
		keep = outside
	default:
		keep = c.list(o.keep)
	}
	at := lists{
		inside:  table.Set{First: inside.First, Count: inside.Count, Empty: o.inside.empty},
		outside: table.Set{First: outside.First, Count: outside.Count, Empty: o.outside.empty},
		keep:    keep,
		sources: table.Run{First: uint32(len(c.contents.Ranges)), Count: uint32(len(o.sources.ranges))},
	}
	c.contents.Ranges = append(c.contents.Ranges, o.sources.ranges...)
	c.listed[o] = at
	return at
}

// list writes the ids of backends, but for those that are addresses of Services.
func (c *Compiler) list(backends []*backend) table.Run {
	run := table.Run{First: uint32(len(c.contents.BackendIDs))}
	for _, b := range backends {
		if !b.vip {
			c.contents.BackendIDs = append(c.contents.BackendIDs, b.id)
			run.Count++
		}
	}
	return run
}
