package pipeline

import (
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// classify settles what has no whole transport header of a protocol that frontends can
// have. None: the packet has ports and may belong to a flow.
func (pl *Pipeline) classify(o packet.Outcome) reason.Reason {
	v := &pl.visit
	p := &v.packet
	switch {
	case o == packet.OK && !p.Tagged:
		return reason.None
	case o == packet.Truncated || o == packet.Invalid:
		return reason.Malformed
	case o == packet.NotIP || p.Tagged:
		// Tagged traffic is claimed at the VLAN's own device.
		return v.unclaimed()
	case p.IsICMP() && !p.Fragment:
		return pl.message()
	case !v.toVIP() && !(o == packet.OK && pl.track()):
		return v.unclaimed()
	case p.IsICMP():
		return reason.ICMPError // in fragments
	}
	return reason.UnsupportedProtocol
}

// toVIP reports whether the packet goes to an address of a Service. At the egress of a
// port only flows are claimed: what the node sends to its own services leaves by lace0.
func (v *visit) toVIP() bool {
	return !v.punt.Egress && v.tables.IsVIP(v.in.Network, &v.packet.Dst)
}

// unclaimed is the reason of a packet that is not Lace's. What the node sent into a
// service range cannot be given back: the route that brought it here would bring it
// again.
func (v *visit) unclaimed() reason.Reason {
	if v.in.Kind == table.PortHost {
		return reason.UnallocatedVIP
	}
	return reason.NotClaimed
}

// spoofed checks that the source lives where the packet came from: a pod sends from its
// own addresses only, an uplink never from an address of this node, the node only from
// its own. The claim programs check the same before every punt; here it is checked
// again before anything is registered or answered, because their map and these tables
// are not replaced at one instant.
func (v *visit) spoofed() bool {
	a := v.tables.Address(v.in.Network, &v.packet.Src)
	bad := a == nil || a.Port != v.in.ID
	if v.in.Kind == table.PortUplink {
		bad = a != nil
	}
	if bad {
		v.trace.note("source", "the source address does not live behind this port")
	} else {
		v.trace.note("source", "the source address belongs to this port")
	}
	return bad
}
