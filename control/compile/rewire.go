package compile

import (
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// SetAttachments replaces ports, addresses, routes and the node's own addresses.
func (c *Compiler) SetAttachments(a model.Attachments) {
	next, problems := wire(a)
	c.wiringProblems = problems
	c.wanted = next
	c.reside(residents(&next, &a))
	c.rehost(&next)
}

// rewired reports whether the records would differ from the published ones.
func (c *Compiler) rewired() bool {
	w, p := &c.wanted, &c.published
	return w.node4 != p.node4 || w.node6 != p.node6 || !slices.EqualFunc(w.ports, p.ports, samePort) ||
		!slices.Equal(w.addresses, p.addresses) || !slices.Equal(w.routes, p.routes)
}

// samePort compares all but the generation, which the wanted side does not have.
func samePort(a, b table.Port) bool {
	a.Generation, b.Generation = 0, 0
	return a == b
}

// sameDoor reports whether packets to the port still go the same way. Flags concern new
// flows only.
func sameDoor(a, b table.Port) bool {
	a.MTU, b.MTU = 0, 0
	a.Flags, b.Flags = 0, 0
	return samePort(a, b)
}

// settlePorts publishes the wanted wiring, with new generations where flows must find
// their target anew.
func (c *Compiler) settlePorts(snapshot uint64) {
	if !c.rewired() {
		return
	}
	before := map[uint16]table.Port{}
	for _, p := range c.published.ports {
		before[p.ID] = p
	}
	was := reachOf(c.published.addresses, c.published.routes)
	gone := was.deserted(reachOf(c.wanted.addresses, c.wanted.routes))
	next := c.wanted
	next.ports = slices.Clone(next.ports)
	for i := range next.ports {
		p := &next.ports[i]
		last, known := before[p.ID]
		p.Generation = last.Generation
		if !known || !sameDoor(last, *p) || gone[p.ID] {
			p.Generation = stamp(snapshot, last.Generation)
		}
	}
	c.published = next
}
