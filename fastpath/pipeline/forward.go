package pipeline

import (
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// locate finds the port that leads to an address: the one behind which it lives on this
// node, else the one that its route names. nil: there is none.
func (v *visit) locate(network packet.NetworkID, a *packet.Addr) *table.Port {
	if here := v.tables.Address(network, a); here != nil {
		return v.tables.Port(here.Port)
	}
	if id, ok := v.tables.Route(network, a); ok {
		return v.tables.Port(id)
	}
	return nil
}

// forward rewrites the packet by pl.flow and decides how it leaves. None: it is ready.
// The frame is untouched when it does not fit.
func (pl *Pipeline) forward() reason.Reason {
	v, f := &pl.visit, &pl.flow
	if f.Flags&conntrack.FlagStack != 0 {
		return pl.hand()
	}
	if r := v.fits(); r != reason.None {
		return r
	}
	if !nat.Apply(&v.packet, &f.Rewrite) {
		return reason.Malformed
	}
	v.trace.rewrite(f)
	if v.routed() {
		nat.DecrementTTL(&v.packet)
	}
	v.how = packet.Direct
	if v.out.Kind == table.PortHost && f.Flags&conntrack.FlagReply == 0 && !v.fromHost() {
		// A backend in the node's own stack: the packet goes on where it came in, so that
		// reverse-path filters find it on the right device.
		v.how, v.out = packet.Stack, v.in
	}
	v.trace.delivery(v.how, v.out)
	return reason.None
}

// routed reports whether the packet passes from one port to another, as through a
// router. What the node itself sends or gets is not routed.
func (v *visit) routed() bool { return v.out.Kind != table.PortHost && !v.fromHost() }

// fits checks what a router checks: the packet may still travel, and is not longer than
// the way out takes, or may be cut.
func (v *visit) fits() reason.Reason {
	switch {
	case v.routed() && v.packet.TTL <= 1:
		return reason.TTLExceeded
	case v.out.Kind != table.PortHost && uint32(v.packet.End-v.packet.L3) > v.out.MTU:
		v.cuts = v.packet.MayCut(v.out.MTU)
		if !v.cuts {
			return reason.TooBig
		}
	}
	return reason.None
}
