package compile

import (
	"lace-cni.io/lace/fastpath/table"
)

// backend is an endpoint address, protocol and port, however many Services have it. There are
// more of them than of anything else.
type backend struct {
	key
	refs    int32 // Service ports that have it
	serving int32 // of them, those in which it may keep flows

	bumped     uint32 // low half of the snapshot that gave it this generation; 0: one of an earlier run
	id         uint32 // as published; 0: not published
	generation uint16
	served     bool // as published
	vip        bool // its address is one of a Service: it is offered to nobody
	dirty      bool
}

// ref is one Service port's hold on a backend.
type ref struct {
	*backend
	serving bool
}

func (c *Compiler) backend(k key) *backend {
	b := c.backends[k]
	if b == nil {
		b = &backend{key: k}
		c.backends[k] = b
	}
	return b
}

// hold counts a reference in (n = 1) or out (n = -1).
func (c *Compiler) hold(r ref, n int32) {
	before := r.refs
	r.refs += n
	if before == 0 || r.refs == 0 {
		c.dwell(r.spot(), n)
	}
	if r.serving {
		r.backend.serving += n
	}
	c.touchBackend(r.backend)
}

func (c *Compiler) touchBackend(b *backend) {
	if !b.dirty {
		b.dirty = true
		c.dirtyBackends = append(c.dirtyBackends, b)
	}
}

// settleBackend brings what is published in line with what is wanted.
func (c *Compiler) settleBackend(b *backend, snapshot uint64) {
	b.dirty = false
	c.judge(b)
	serving := b.serving > 0
	switch wanted := b.refs > 0 && !b.vip && !c.excluded.backend(b); {
	case wanted && b.id == 0:
		b.id = c.backendIDs.take(b)
		b.bump(snapshot)
	case wanted && serving != b.served:
		b.bump(snapshot)
	case !wanted && b.id != 0:
		c.backendIDs.put(b.id)
		b.id = 0
	}
	b.served = serving
	if b.refs == 0 {
		delete(c.backends, b.key)
	}
}

// bump gives the backend another generation, once in each snapshot.
func (b *backend) bump(snapshot uint64) {
	if now := uint32(snapshot); b.bumped != now {
		b.generation, b.bumped = stamp(snapshot, b.generation), now
	}
}

func (b *backend) record() table.Backend {
	r := table.Backend{
		ID: b.id, Network: b.network, Addr: b.addr, Port: b.port,
		Generation: b.generation, Protocol: b.protocol,
	}
	if b.served {
		r.Serving = 1
	}
	return r
}
