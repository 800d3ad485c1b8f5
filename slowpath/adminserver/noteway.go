package adminserver

import (
	"net/netip"
	"slices"
	"strings"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

// noteWay says what is behind the last step of a flow on a node whose stack routes packets of
// Services: why the stack does not get this one, or what keeps it from forwarding it.
func noteWay(out *api.Explanation, who sender, f *conntrack.Flow, tables *table.Snapshot, state *publish.State) {
	switch {
	case !delivers(state, model.Stack):
	case deliveryOf(f) == model.Direct:
		out.Notes = append(out.Notes, "it goes on past the node's own stack: "+whyDirect(who, f))
	case !toNode(&f.Rewrite.Dst, who.port.Network, tables):
		out.Notes = append(out.Notes, stopped(f.Rewrite.Dst.Netip(), state)...)
	}
}

func delivers(state *publish.State, d model.Delivery) bool {
	return slices.ContainsFunc(state.Attachments.Ports, func(p model.Port) bool { return p.Kind != model.PortHost && p.Delivery == d })
}

// whyDirect is why the node's stack cannot route a flow.
func whyDirect(who sender, f *conntrack.Flow) string {
	switch {
	case who.port.Kind == table.PortHost:
		return "what the node itself sends has passed it on the way to lace0"
	case f.Rewrite.Src != f.Src:
		return "it would not take this source from outside"
	}
	return "one of the two ends is not delivered by it, or the way back to the client is none that Lace sees"
}

// toNode reports whether a backend is the node itself: nothing has to be forwarded.
func toNode(a *packet.Addr, network packet.NetworkID, tables *table.Snapshot) bool {
	here := tables.Address(network, a)
	return here != nil && here.Port == table.HostPort
}

// forwardingOff is the Problem of a node that does not forward packets of a family, or not those
// of some devices; its message says which.
const forwardingOff = "ForwardingOff"

// stopped are the Problems that tell what the node's stack does with a packet of this family once
// it has it: no reason counts that, for the packet is not Lace's any more.
func stopped(to netip.Addr, state *publish.State) (notes []string) {
	family := "forward IPv6"
	if to.Is4() {
		family = "forward IPv4"
	}
	for _, p := range state.Problems {
		if p.Reason == forwardingOff && strings.Contains(p.Message, family) {
			notes = append(notes, "what the node's own stack does with it is another matter: "+p.Message+" ("+p.Reason+")")
		}
	}
	return notes
}
