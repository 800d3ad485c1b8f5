package pipeline

import (
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// complain is what a router says to the sender of a packet that cannot go on (RFC 1812,
// section 5.3.1; RFC 8200, sections 3 and 5): the reason becomes one of class answer. It
// stays a drop where nothing may or can be said: about an ICMP error, a later fragment, a
// packet from or to no single host, one with a source that is not its sender's, and on a
// node without an address of the family.
func (pl *Pipeline) complain(r reason.Reason) reason.Reason {
	v := &pl.visit
	if r != reason.TooBig && r != reason.TTLExceeded {
		return r
	}
	if v.packet.IsICMP() || *pl.router() == (packet.Addr{}) || !v.punt.Egress && v.spoofed() {
		v.trace.note("answer", "the sender cannot be told")
		return r
	}
	if r == reason.TooBig {
		return reason.PacketTooBig
	}
	return reason.TimeExceeded
}

// oversize settles a packet of which only the beginning is here, because it is longer than
// the trunk takes: its sender is told what does fit.
func (pl *Pipeline) oversize() reason.Reason {
	v := &pl.visit
	o := v.packet.ParseCut(v.frame)
	v.trace.parsed(&v.packet, o)
	if o != packet.OK && o != packet.NoPorts {
		return reason.Malformed
	}
	if o == packet.OK {
		pl.track() // for its direction
	}
	v.out = v.tables.Port(table.HostPort)
	v.trace.note("trunk", "the packet is longer than the trunk takes")
	return reason.TooBig
}

// refusedOnTheWay tells what a router says from what a host says in a VIP's name.
func refusedOnTheWay(r reason.Reason) bool {
	return r == reason.PacketTooBig || r == reason.TimeExceeded
}

// untold is the drop that a reason of complain becomes when the error cannot be written.
func untold(r reason.Reason) reason.Reason {
	switch r {
	case reason.PacketTooBig:
		return reason.TooBig
	case reason.TimeExceeded:
		return reason.TTLExceeded
	}
	return reason.Malformed
}

// router is the address from which this node speaks as a router: its own of the family.
// The node's own stack refuses packets from itself that come in on a device, so that to it
// the VIP speaks. Zero: there is none.
func (pl *Pipeline) router() *packet.Addr {
	v := &pl.visit
	switch {
	case v.fromHost() && pl.flow.Tuple == v.tuple && pl.flow.Flags&conntrack.FlagReply != 0:
		return &pl.flow.Rewrite.Src
	case v.fromHost():
		return &v.packet.Dst
	case v.packet.Family == 4:
		return &v.tables.Settings().NodeAddr4
	}
	return &v.tables.Settings().NodeAddr6
}

// mtu is the longest packet that the way out of the packet in hand takes, 0 when there is
// no way.
func (v *visit) mtu() uint32 {
	if v.out == nil {
		return 0
	}
	return v.out.MTU
}
