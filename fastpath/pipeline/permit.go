package pipeline

import (
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// permitted reports whether the sender may begin a flow to the frontend.
func (v *visit) permitted(frontend *table.Frontend) bool {
	if frontend.Flags&table.Restricted == 0 {
		return true
	}
	ok := v.tables.Permits(frontend, &v.packet.Src)
	if ok {
		v.trace.note("sources", "the client is in the source ranges of the Service")
	} else {
		v.trace.note("sources", "the client is in none of the source ranges of the Service")
	}
	return ok
}

// shut ends a datagram flow whose client is not admitted any more: it may never end by
// itself. A connection runs on until it does. None: it may go on.
func (pl *Pipeline) shut(frontend *table.Frontend) reason.Reason {
	if pl.visit.permitted(frontend) {
		return reason.None
	}
	pl.visit.trace.note("flow", "ended: its client is not admitted any more")
	pl.flows.Delete(&pl.flow)
	return reason.SourceNotAllowed
}
