package pipeline

import (
	"slices"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// reconsider looks again at a flow that was decided under other tables, or that is asked
// to open once more. None: it holds, restamped. The rules:
//
//   - the frontend is gone or another one by now: the flow ends;
//   - UDP to a backend that no longer serves it is given another one at once, for a
//     datagram says nothing to a socket that is gone;
//   - TCP and SCTP stay with their backend until they end: the connection lives there
//     and nowhere else;
//   - a SYN on a connection that both ends have closed opens a new flow; one towards a
//     backend that no longer serves is given another; any other SYN is a retransmission;
//   - UDP of a client that the frontend does not admit any more ends;
//   - replies are un-translated, whatever became of the backend;
//   - a target that moved is looked up again.
func (pl *Pipeline) reconsider(frontend *table.Frontend, backend *table.Backend) reason.Reason {
	v, f := &pl.visit, &pl.flow
	if !sameFrontend(f, frontend) {
		return pl.end()
	}
	if !sameBackend(f, backend) {
		backend = nil
	}
	if f.Flags&conntrack.FlagReply == 0 {
		if v.opening() && pl.reopens() {
			return pl.open(frontend)
		}
		datagram := v.packet.Protocol == packet.ProtocolUDP
		if datagram && frontend.Generation != f.Stamp.Frontend {
			if r := pl.shut(frontend); r != reason.None {
				return r
			}
		}
		mobile := datagram || v.opening()
		if mobile && !pl.serves(frontend, backend) {
			return pl.repick(frontend)
		}
	}
	return pl.restamp(frontend, backend)
}

// reopens reports whether a SYN on this flow begins a new connection: both ends have
// sent their FIN. A reset alone does not tell, for anybody can forge one.
func (pl *Pipeline) reopens() bool {
	v, f := &pl.visit, &pl.flow
	if pl.flows.Peer(f, &pl.peer) && f.State&pl.peer.State&conntrack.StateFIN == 0 {
		return false
	}
	v.trace.note("flow", "closed by both ends: the SYN opens a new one")
	pl.flows.Delete(f)
	return true
}

// serves reports whether the backend may keep flows of this frontend. When either is of
// another generation, the backend may have left this frontend and serve on for another
// Service, so that its own record does not tell.
func (pl *Pipeline) serves(frontend *table.Frontend, backend *table.Backend) bool {
	if backend == nil || backend.Serving == 0 {
		return false
	}
	if stamp := &pl.flow.Stamp; frontend.Generation == stamp.Frontend && backend.Generation == stamp.Backend {
		return true
	}
	return slices.Contains(pl.visit.tables.Keep(frontend), backend.ID)
}

// restamp finds the target anew if it moved, and notes the generations under which the
// flow now holds.
func (pl *Pipeline) restamp(frontend *table.Frontend, backend *table.Backend) reason.Reason {
	v, f := &pl.visit, &pl.flow
	if v.out == nil || v.out.Generation != f.Stamp.Target {
		if !pl.flows.Peer(f, &pl.peer) {
			return pl.end()
		}
		v.trace.note("flow", "its target changed and is looked up again")
		v.out = pl.retarget()
		if v.out == nil {
			return reason.NoTarget
		}
	}
	stamp := conntrack.Stamp{Frontend: frontend.Generation, Backend: f.Stamp.Backend, Target: v.out.Generation}
	if backend != nil {
		stamp.Backend = backend.Generation
	}
	if stamp != f.Stamp || v.out.ID != f.Target {
		pl.flows.Restamp(f, stamp, v.out.ID)
		f.Stamp, f.Target = stamp, v.out.ID
	}
	return reason.None
}

// sameFrontend guards against an id that has come to mean something else.
func sameFrontend(f *conntrack.Flow, fe *table.Frontend) bool {
	if f.Flags&conntrack.FlagReply != 0 {
		return fe.Addr == f.Rewrite.Src && fe.Port == f.Rewrite.SrcPort && fe.Protocol == f.Protocol
	}
	return fe.Addr == f.Dst && fe.Port == f.DstPort && fe.Protocol == f.Protocol && fe.Network == f.Network
}

// sameBackend guards against an id that has come to mean something else.
func sameBackend(f *conntrack.Flow, b *table.Backend) bool {
	if b == nil {
		return false
	}
	if f.Flags&conntrack.FlagReply != 0 {
		return b.Addr == f.Src && b.Port == f.SrcPort
	}
	return b.Addr == f.Rewrite.Dst && b.Port == f.Rewrite.DstPort
}
