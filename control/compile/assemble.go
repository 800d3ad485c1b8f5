package compile

import (
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
	t.Frontends, t.BackendIDs = t.Frontends[:0], t.BackendIDs[:0]
	for _, f := range c.frontendIDs.holders {
		if f != nil {
			c.assembleFrontend(f)
		}
	}
	t.Ports, t.Addresses, t.Routes = c.published.ports, c.published.addresses, c.published.routes
	t.Settings = c.publishedSettings
}

// assembleFrontend writes one frontend. A ClusterIP offers the same to everybody: where
// the client is changes nothing for it.
func (c *Compiler) assembleFrontend(f *frontend) {
	t := &c.contents
	from := c.holder(f).set
	run := table.Set{First: uint32(len(t.BackendIDs)), Empty: from.empty}
	for _, b := range from.members {
		if !b.vip {
			t.BackendIDs = append(t.BackendIDs, b.id)
			run.Count++
		}
	}
	t.Frontends = append(t.Frontends, table.Frontend{
		ID: f.id, Network: f.network, Addr: f.addr, Port: f.port, Protocol: f.protocol,
		Generation: f.generation, Inside: run, Outside: run,
	})
}
