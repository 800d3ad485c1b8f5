package pipeline

import (
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// message settles an ICMP message: an error about a registered flow is translated to the
// end of the flow for which it is meant; nothing else that is addressed to a VIP is, for
// a VIP is nobody who could answer, nor an error that somebody made up.
func (pl *Pipeline) message() reason.Reason {
	v := &pl.visit
	switch {
	case pl.related():
		return pl.relay()
	case pl.forged():
		return reason.UnwantedICMP
	case !v.toVIP():
		return v.unclaimed()
	case v.packet.IsEcho():
		return reason.Echo
	}
	return reason.ICMPError
}

// related finds the flow that the error in hand is about, and copies into pl.flow the
// direction in which the error travels: that of the packets that answer the quoted one.
// Nothing is noted in the flow table, not even that a flow has expired: an error has no
// proof but what anybody could guess (RFC 5927), so no flow lives or ends by it.
func (pl *Pipeline) related() bool {
	v, q := &pl.visit, &pl.quote
	if !pl.quotes() {
		return false
	}
	v.tuple = conntrack.Tuple{
		Src: q.Dst, Dst: q.Src, SrcPort: q.DstPort, DstPort: q.SrcPort,
		Network: v.in.Network, Protocol: q.Protocol,
	}
	f := &pl.flow
	if !pl.flows.Lookup(&v.tuple, f) || pl.outlived(f) {
		v.trace.note("flow", "the packet that the error quotes is of no registered flow")
		return false
	}
	v.trace.note("flow", "the error quotes a packet of a registered flow")
	v.trace.flow(f)
	return true
}

// quotes reads into pl.quote the packet that the error in hand quotes, if it is an error
// and goes to the sender of that packet.
func (pl *Pipeline) quotes() bool {
	p, q := &pl.visit.packet, &pl.quote
	return p.IsError() && q.Parse(p) == packet.OK && q.Src == p.Dst
}

// forged reports whether the error in hand quotes a packet to a VIP that was sent from this
// node: such a packet is translated before it leaves, and nobody can have met it. From an
// uplink only what goes to a pod is surely forged: the node itself may lack a route to
// Lace and have sent by another way. is_forged in xdp/bpf/message.h is the same rule.
func (pl *Pipeline) forged() bool {
	v, q := &pl.visit, &pl.quote
	if v.fromHost() || !pl.quotes() || !v.claimed(&q.Dst, q.Protocol, q.DstPort) {
		return false
	}
	a := v.tables.Address(v.in.Network, &q.Src)
	if a == nil || v.in.Kind == table.PortUplink && a.Port == table.HostPort {
		return false
	}
	v.trace.note("source", "the error quotes a packet to a VIP, which nobody can have met: it is forged")
	return true
}

// claimed reports whether packets to an address and port are Lace's.
func (v *visit) claimed(addr *packet.Addr, protocol uint8, port uint16) bool {
	return v.tables.IsVIP(v.in.Network, addr) || v.tables.Frontend(v.in.Network, addr, protocol, port) != nil
}

// relay translates the error and sends it on its way. The flow stays as it is.
func (pl *Pipeline) relay() reason.Reason {
	v, f := &pl.visit, &pl.flow
	frontend := v.tables.FrontendByID(f.Frontend)
	switch {
	case frontend == nil || !sameFrontend(f, frontend):
		return reason.FlowEnded
	case v.packet.IsAdvice():
		return reason.UnwantedICMP
	case !v.punt.Egress && (v.spoofed() || pl.misplaced()):
		return reason.SpoofedSource
	case f.Flags&conntrack.FlagStack != 0:
		return pl.handError()
	}
	if v.out = pl.whereTo(); v.out == nil {
		return reason.NoTarget
	}
	if r := v.fits(); r != reason.None {
		return r
	}
	if !nat.ApplyError(&v.packet, &pl.quote, f) {
		return reason.Malformed
	}
	v.trace.rewrite(f)
	if v.routed() {
		nat.DecrementTTL(&v.packet)
	}
	v.how = packet.Direct
	if v.comesIn(f) {
		v.how, v.out = packet.Stack, v.in
	}
	v.trace.delivery(v.how, v.out)
	return reason.ICMPTranslated
}

// misplaced reports whether a pod complains about a packet that was not addressed to it.
// Pods are no routers: such an error is made up, to slow down a connection of others.
func (pl *Pipeline) misplaced() bool {
	v := &pl.visit
	if v.in.Kind != table.PortPod {
		return false
	}
	a := v.tables.Address(v.in.Network, &pl.quote.Dst)
	if a != nil && a.Port == v.in.ID {
		return false
	}
	v.trace.note("source", "the packet that the error quotes was not on its way to this port")
	return true
}

// whereTo is the port through which pl.flow's packets leave.
func (pl *Pipeline) whereTo() *table.Port {
	v, f := &pl.visit, &pl.flow
	if out := v.tables.Port(f.Target); out != nil && out.Generation == f.Stamp.Target {
		return out
	}
	if !pl.flows.Peer(f, &pl.peer) {
		return nil
	}
	return v.locate(pl.peer.Network, &f.Rewrite.Dst)
}

// comesIn reports whether the node's own stack has to take the error from the port on which
// it came: its backend gets all its packets there, and its client an error that still
// bears a router's address, which reverse-path filters look for on that port and not
// where the service addresses are.
func (v *visit) comesIn(f *conntrack.Flow) bool {
	if v.out.Kind != table.PortHost || v.fromHost() {
		return false
	}
	return f.Flags&conntrack.FlagReply == 0 || v.packet.Src != f.Rewrite.Src
}
