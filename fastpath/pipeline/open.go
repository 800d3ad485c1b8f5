package pipeline

import (
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// open begins a flow: it chooses a backend for the packet in hand, registers both
// directions and forwards the packet.
func (pl *Pipeline) open(frontend *table.Frontend) reason.Reason {
	return pl.settle(frontend, reason.NewFlow)
}

// repick gives the flow of the packet in hand another backend. Without one the flow
// ends, and the client is told as if it had just come.
func (pl *Pipeline) repick(frontend *table.Frontend) reason.Reason {
	pl.visit.trace.note("flow", "its backend no longer serves")
	pl.old = pl.flow
	r := pl.settle(frontend, reason.Repicked)
	if r == reason.NoEndpoints || r == reason.NoLocalEndpoint || r == reason.SourceNotAllowed {
		pl.flows.Delete(&pl.old)
	}
	return r
}

// settle is what open and repick share; as is the reason given when all goes well.
func (pl *Pipeline) settle(frontend *table.Frontend, as reason.Reason) reason.Reason {
	backend, r := pl.choose(frontend)
	if r != reason.None {
		return r
	}
	t, r := pl.translate(frontend, backend)
	if r != reason.None {
		return r
	}
	pl.describe(frontend, backend)
	switch pl.register(&t, as == reason.Repicked) {
	case conntrack.Inserted:
		pl.lane.Begun(&pl.flow)
		pl.visit.trace.note("flow", "both directions would be registered")
		if r := pl.forward(); r != reason.None {
			return r
		}
		return as
	case conntrack.Exists:
		return pl.join()
	case conntrack.Clash:
		return reason.SourcePortsUsedUp
	case conntrack.HalfOpenFull:
		return reason.HalfOpenFull
	case conntrack.ShareFull:
		return reason.FlowShareFull
	case conntrack.Invalid:
		return reason.Malformed
	}
	return reason.FlowTableFull
}

// choose picks a backend, or says why there is none to pick.
func (pl *Pipeline) choose(frontend *table.Frontend) (*table.Backend, reason.Reason) {
	v := &pl.visit
	set := frontend.Inside
	if v.outside() {
		set = frontend.Outside
	}
	v.trace.frontend(frontend, set, v.outside())
	ids := v.tables.Set(set)
	switch {
	case len(ids) == 0 && set.Empty == table.Drop:
		return nil, reason.NoLocalEndpoint
	case len(ids) == 0:
		return nil, reason.NoEndpoints
	case !v.permitted(frontend):
		return nil, reason.SourceNotAllowed
	case v.packet.Protocol == packet.ProtocolTCP && !v.opening():
		return nil, reason.NoFlow
	}
	id, how := pl.pick(frontend, ids)
	backend := v.tables.Backend(id)
	v.trace.choice(backend, how, len(ids))
	return backend, reason.None
}

// translate finds the way to the backend and says what the packet becomes on it. The
// backend sees the client's own address unless the answer could not come back so:
//
//   - a client that is its own backend, and a node's own packet to the node itself, show
//     the VIP, for nobody takes packets from his own address;
//   - an outside client whose backend is on another node shows the address of this node,
//     with a port of the range that the node's own sockets do not use, for that node
//     would answer the client past this one.
func (pl *Pipeline) translate(frontend *table.Frontend, backend *table.Backend) (nat.Translation, reason.Reason) {
	v := &pl.visit
	t := nat.To(&v.tuple, backend.Network, backend.Addr, backend.Port)
	v.out = v.beyond(backend.Network, &backend.Addr)
	switch {
	case v.out == nil:
		return t, reason.NoTarget
	case v.out.Kind == table.PortHost && v.fromHost():
		t.Source = v.packet.Dst
	case v.out.Kind == table.PortUplink && v.outside():
		// Its own backend, too: whoever has the address it called, the answer comes here.
		t.Source, t.SourcePort = v.nodeAddr(), 0
		if t.Source == (packet.Addr{}) {
			return t, reason.NoTarget
		}
	case t.Hairpin() && frontend.Flags&table.Narrow != 0:
		// The frontend's address is the node's: its sockets have the other ports.
		t.SourcePort = 0
	}
	v.back = v.home()
	v.stack = v.routedByStack(&t, v.back)
	if v.stack {
		return t, reason.None
	}
	return t, v.fits()
}

// nodeAddr is the node's own address of the packet's family, zero when it has none.
func (v *visit) nodeAddr() packet.Addr {
	if v.packet.Family == 4 {
		return v.tables.Settings().NodeAddr4
	}
	return v.tables.Settings().NodeAddr6
}

// describe fills in what the flow is decided by, in both directions.
func (pl *Pipeline) describe(frontend *table.Frontend, backend *table.Backend) {
	v := &pl.visit
	pl.flow = decision(frontend, backend, v.back, v.out)
	pl.peer = decision(frontend, backend, v.out, v.back)
	pl.flow.State = conntrack.StateOf(v.packet.Flags)
	var flags conntrack.Flags
	if v.outside() {
		flags |= conntrack.FlagOutside
	}
	if v.stack {
		flags |= conntrack.FlagStack
	}
	pl.flow.Flags, pl.peer.Flags = flags, flags
	if v.tables.Settings().Lane != 0 {
		pl.lane.Begin(&pl.flow, &pl.peer, v.packet.Protocol, v.near(&pl.flow))
	}
}

// near reports whether neither end of the flow lies beyond a wire.
func (v *visit) near(f *conntrack.Flow) bool {
	return isNear(v.tables.Port(f.In)) && isNear(v.tables.Port(f.Target))
}

func isNear(p *table.Port) bool {
	return p != nil && (p.Kind != table.PortUplink || p.Flags&table.PortNear != 0)
}

// decision is one direction of a flow, from one port to another, but for what it
// translates.
func decision(frontend *table.Frontend, backend *table.Backend, from, target *table.Port) conntrack.Flow {
	return conntrack.Flow{
		Frontend: frontend.ID, Backend: backend.ID, In: from.ID, Target: target.ID,
		Stamp: conntrack.Stamp{
			Frontend: frontend.Generation, Backend: backend.Generation, Target: target.Generation,
		},
	}
}

// register enters both directions into the flow table, in place of pl.old when the flow
// is re-picked. They are in pl.flow and pl.peer afterwards. A closed connection's
// tombstone gives way when there is no room otherwise.
func (pl *Pipeline) register(t *nat.Translation, again bool) conntrack.Result {
	r := pl.enter(t, again)
	tick := pl.visit.tick
	if r == conntrack.Full && pl.flows.Reclaim(&pl.flow.Tuple, &pl.peer.Tuple, tick) ||
		r == conntrack.ShareFull && pl.flows.ReclaimOwn(&pl.flow, tick) {
		r = pl.enter(t, again)
	}
	return r
}

// nodePort reports whether a port of the source that a flow is to have is one of a Service:
// an answer to it must not be taken for a call.
func (pl *Pipeline) nodePort(port uint16) bool {
	v := &pl.visit
	return v.tables.Frontend(v.in.Network, &pl.source, v.packet.Protocol, port) != nil
}

// enter is one attempt to register.
func (pl *Pipeline) enter(t *nat.Translation, again bool) conntrack.Result {
	v := &pl.visit
	settings := v.tables.Settings()
	pl.ports.First, pl.ports.Last = settings.SourcePortFirst, settings.SourcePortLast
	pl.source = t.Source
	if again {
		r := pl.ports.Reopen(pl.flows, pl.rand, &pl.old, t, &pl.flow, &pl.peer, v.tick)
		if r != conntrack.Gone {
			return r
		}
		// Another worker was faster: it has re-picked the flow, or ended it.
	}
	return pl.ports.Open(pl.flows, pl.rand, t, &pl.flow, &pl.peer, v.tick)
}

// join takes the packet along a flow that another worker registered a moment ago, from
// another packet of the same connection: its choice holds.
func (pl *Pipeline) join() reason.Reason {
	v := &pl.visit
	v.trace.note("flow", "another worker has just registered it")
	v.out = v.tables.Port(pl.flow.Target)
	if v.out == nil {
		return reason.NoTarget
	}
	return pl.goOn()
}
