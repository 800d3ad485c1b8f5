package pipeline

import (
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// Flows that the node's own stack routes: the client's packets are given to it on the port
// where they came in, already translated; replies come in as they are and are translated
// back where they leave for the client. Whatever looks at packets on their way through the
// node sees one connection, from the client to the backend.

const stackReply = conntrack.FlagStack | conntrack.FlagReply

// isStackReply reports whether the flow is the reply direction of one that the stack routes.
func isStackReply(f *conntrack.Flow) bool { return f.Flags&stackReply == stackReply }

// routedByStack reports whether the node's stack is to route the flow that t describes,
// from the port in hand to v.out, with replies to back. It is where the port of either
// end asks for it and it can be done:
//
//   - a client in the node's own stack has its packets on lace0, from where the stack would
//     route them to lace0 again;
//   - a source that was rewritten to another address is the VIP or the node's own, which
//     the stack refuses from outside;
//   - replies that leave by a device that is no port would not be translated back.
func (v *visit) routedByStack(t *nat.Translation, back *table.Port) bool {
	return (v.in.Flags|v.out.Flags)&table.PortStack != 0 && !v.fromHost() &&
		t.Source == t.Client.Src && back.Kind != table.PortHost
}

// home finds the port where replies to the client leave.
func (v *visit) home() *table.Port {
	if back := v.locate(v.in.Network, &v.packet.Src); back != nil {
		return back
	}
	return v.in
}

// beyond finds the port that leads to the backend. Where the tables know none, the node's
// stack may.
func (v *visit) beyond(network packet.NetworkID, a *packet.Addr) *table.Port {
	if out := v.locate(network, a); out != nil || v.in.Flags&table.PortStack == 0 {
		return out
	}
	return v.tables.Port(table.HostPort)
}

// retarget finds the port to which the flow in hand leads by now.
func (pl *Pipeline) retarget() *table.Port {
	v, f := &pl.visit, &pl.flow
	switch {
	case isStackReply(f):
		return v.in // where the stack has brought it
	case f.Flags&conntrack.FlagStack != 0:
		return v.beyond(pl.peer.Network, &f.Rewrite.Dst)
	}
	// The other direction lives in the network of this one's destination.
	return v.locate(pl.peer.Network, &f.Rewrite.Dst)
}

// hand rewrites the packet by pl.flow and hands it to the stack, which looks after its time
// to live and its length itself.
func (pl *Pipeline) hand() reason.Reason {
	v, f := &pl.visit, &pl.flow
	if !nat.Apply(&v.packet, &f.Rewrite) {
		return reason.Malformed
	}
	v.trace.rewrite(f)
	v.goOn()
	return reason.None
}

// handError is hand for an error about a packet of pl.flow's other direction.
func (pl *Pipeline) handError() reason.Reason {
	v, f := &pl.visit, &pl.flow
	switch {
	case v.passesBy(f):
		return reason.NotClaimed
	case !nat.ApplyError(&v.packet, &pl.quote, f):
		return reason.Malformed
	}
	v.trace.rewrite(f)
	v.goOn()
	return reason.ICMPTranslated
}

// goOn lets the frame go on from where it was met, in or out.
func (v *visit) goOn() {
	v.how, v.out = packet.Stack, v.in
	if v.punt.Egress {
		v.how = packet.Resume
	}
	v.trace.delivery(v.how, v.out)
}

// passesBy reports whether the packet in hand travels with replies that the stack routes,
// and was met before it did.
func (v *visit) passesBy(f *conntrack.Flow) bool {
	if !isStackReply(f) || v.punt.Egress {
		return false
	}
	v.trace.note("flow", "the node's stack brings it to where it is translated back")
	return true
}
