package pipeline

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// patience is the shortest idle time after which a flow's expiry is looked at before
// the sweep has come by, in ticks: about one second. Below it the look at the other
// direction, a second slot, would be wasted.
const patience = 15

// track finds the live flow of the packet in hand and copies it into pl.flow.
func (pl *Pipeline) track() bool {
	v := &pl.visit
	p := &v.packet
	t := &v.tuple
	copyAddr(&t.Src, &p.Src)
	copyAddr(&t.Dst, &p.Dst)
	t.SrcPort, t.DstPort, t.Network, t.Protocol = p.SrcPort, p.DstPort, v.in.Network, p.Protocol
	f := &pl.flow
	if !pl.flows.Lookup(t, f) || pl.expired(f) {
		v.trace.note("flow", "none registered")
		return false
	}
	v.trace.flow(f)
	return true
}

// copyAddr copies in two words. The parser has just written them so; one load across
// both would wait until they have left the processor's store buffer, some 5 ns later.
func copyAddr(to, from *packet.Addr) {
	le := binary.LittleEndian
	le.PutUint64(to[:8], le.Uint64(from[:8]))
	le.PutUint64(to[8:], le.Uint64(from[8:]))
}

// expired ends a flow that the sweep has yet to collect.
func (pl *Pipeline) expired(f *conntrack.Flow) bool {
	if !pl.outlived(f) {
		return false
	}
	pl.flows.Delete(f)
	return true
}

// outlived reports whether a flow has expired, or lost its other direction.
func (pl *Pipeline) outlived(f *conntrack.Flow) bool {
	v := &pl.visit
	if int32(v.tick-f.LastSeen) < patience {
		return false
	}
	if !pl.flows.Peer(f, &pl.peer) {
		return true
	}
	fwd, rev := directions(f, &pl.peer)
	return v.timeouts().Expired(fwd, rev, v.tick)
}

// directions puts a flow and its peer into the order client to backend, and back.
func directions(f, peer *conntrack.Flow) (fwd, rev *conntrack.Flow) {
	if f.Flags&conntrack.FlagReply != 0 {
		return peer, f
	}
	return f, peer
}

func (v *visit) timeouts() *conntrack.Timeouts {
	return (*conntrack.Timeouts)(&v.tables.Settings().Timeouts)
}

// follow takes the packet along its flow, if what was decided then still holds.
func (pl *Pipeline) follow() reason.Reason {
	v, f := &pl.visit, &pl.flow
	if v.passesBy(f) {
		return reason.NotClaimed
	}
	frontend := v.tables.FrontendByID(f.Frontend)
	if frontend == nil {
		return pl.end()
	}
	backend := v.tables.Backend(f.Backend)
	v.out = v.tables.Port(f.Target)
	if pl.stale(frontend, backend) || v.opening() {
		if r := pl.reconsider(frontend, backend); r != reason.None {
			return r
		}
	}
	return pl.goOn()
}

// goOn forwards the packet by pl.flow and marks the flow as alive. The kernel may carry
// the flow from now on.
func (pl *Pipeline) goOn() reason.Reason {
	v, f := &pl.visit, &pl.flow
	if r := pl.forward(); r != reason.None {
		return r
	}
	if v.opening() && v.near(f) {
		pl.lane.Reopen(f)
	}
	if f.Mode != conntrack.ModeLane && v.tables.Settings().Lane != 0 {
		pl.lane.Offer(f, v.packet.Flags, v.ns)
	}
	pl.flows.Touch(f, conntrack.StateOf(v.packet.Flags), v.tick)
	if f.Flags&conntrack.FlagReply != 0 {
		return reason.Reply
	}
	return reason.Established
}

// end forgets the flow of the packet in hand, whose frontend is gone.
func (pl *Pipeline) end() reason.Reason {
	pl.visit.trace.note("flow", "ended: its frontend is gone")
	pl.flows.Delete(&pl.flow)
	return reason.FlowEnded
}

// stale reports whether the tables have changed in what the flow was decided by.
func (pl *Pipeline) stale(frontend *table.Frontend, backend *table.Backend) bool {
	s, out := &pl.flow.Stamp, pl.visit.out
	return backend == nil || out == nil ||
		s.Frontend != frontend.Generation || s.Backend != backend.Generation || s.Target != out.Generation
}

// opening reports whether the packet asks for a new connection: SYN and nothing that
// contradicts it.
func (v *visit) opening() bool {
	const all = packet.FlagSYN | packet.FlagACK | packet.FlagRST | packet.FlagFIN
	return v.packet.Protocol == packet.ProtocolTCP && v.packet.Flags&all == packet.FlagSYN
}
