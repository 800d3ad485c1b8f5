package compile

import (
	"slices"

	"lace-cni.io/lace/fastpath/table"
)

// adopt takes over ids and generations of an earlier run. Frontends and backends wait
// with their ids, unclaimed, until the first snapshot; those that nobody has set until
// then are gone with it.
func (c *Compiler) adopt(previous *table.Snapshot) {
	byID := map[uint32]*backend{}
	for _, r := range previous.Backends() {
		b := &backend{
			key: key{r.Network, r.Addr, r.Port, r.Protocol},
			id:  r.ID, generation: r.Generation, served: r.Serving == 1,
		}
		if c.backends[b.key] == nil && c.backendIDs.claim(r.ID, b) {
			c.backends[b.key], byID[r.ID] = b, b
			c.touchBackend(b)
		}
	}
	frontends := previous.Frontends()
	for i := range frontends {
		r := &frontends[i]
		f := &frontend{key: key{r.Network, r.Addr, r.Port, r.Protocol}, id: r.ID, generation: r.Generation}
		if !c.frontendIDs.claim(r.ID, f) {
			continue
		}
		c.frontends[f.key] = f
		f.keep = keepers(previous, r, byID)
		f.sources = sources{r.Flags&table.Restricted != 0, slices.Clone(previous.Sources(r))}
		c.touchFrontend(f)
	}
	c.backendIDs.rest()
	c.frontendIDs.rest()
	c.adoptWiring(previous)
}

// keepers are the backends that may keep the flows of a frontend.
func keepers(previous *table.Snapshot, r *table.Frontend, byID map[uint32]*backend) (out []*backend) {
	for _, id := range previous.Keep(r) {
		if b := byID[id]; b != nil {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *backend) int { return a.compare(&b.key) })
	return slices.Compact(out)
}

// adoptWiring copies, since the file may be unmapped.
func (c *Compiler) adoptWiring(previous *table.Snapshot) {
	p := previous.Contents()
	c.published = wiring{
		ports: slices.Clone(p.Ports), addresses: slices.Clone(p.Addresses), routes: slices.Clone(p.Routes),
		node4: p.Settings.NodeAddr4, node6: p.Settings.NodeAddr6,
	}
	c.publishedSettings = p.Settings
}
