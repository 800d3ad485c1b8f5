package adminserver

import (
	"fmt"
	"net/netip"
	"slices"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

// noteDown turns what Go would decide into what becomes of the packet when Go is not
// there to decide. Packets that no program claims do not depend on it.
func noteDown(out *api.Explanation, why string) {
	if why == "" {
		why = "lace-fastpath gives no sign of life"
	}
	out.FastpathDown = why
	if out.Verdict == reason.ClassPass.String() || out.Reason == reason.UnallocatedVIP.String() {
		return
	}
	out.Notes = append(out.Notes, fmt.Sprintf("with lace-fastpath running the outcome would be %s, %s: start it", out.Verdict, out.Reason))
	if len(out.Live) > 0 {
		out.Notes = append(out.Notes, "connections that the kernel carries (moved by lane) go on without lace-fastpath")
	}
	r := reason.NoWorker
	out.Verdict, out.Reason, out.Help = r.Class().String(), r.String(), r.Help()
	for i := range out.Steps {
		switch out.Steps[i].Stage {
		case "verdict":
			out.Steps[i].Text = verdictText(r)
		case "claim":
		default:
			out.Steps[i].Text = "(with lace-fastpath) " + out.Steps[i].Text
		}
	}
	dropped := api.Step{Stage: "trunk", Text: "nobody takes the packet there: it is dropped, and the client tries again"}
	out.Steps = slices.Insert(out.Steps, min(1, len(out.Steps)), dropped)
	out.Backend, out.Pod = "", ""
}

// noteSource says when the backend sees another source than the client's, and why.
func noteSource(out *api.Explanation, who sender, f *conntrack.Flow) {
	r := &f.Rewrite
	if r.Src == f.Src && r.SrcPort == f.SrcPort {
		return
	}
	why := "the client's own address and port towards this backend are taken"
	switch {
	case r.Src == f.Dst && who.port.Kind == table.PortHost:
		why = "a packet of the node to itself shows the Service's address, since nobody takes packets from his own"
	case r.Src == f.Dst:
		why = "the client is its own backend and is shown the Service's address, since nobody takes packets from his own"
	case r.Src != f.Src:
		why = "client and backend are both beyond this node: with this node's address the answers come back through it"
	}
	out.Notes = append(out.Notes, fmt.Sprintf("the backend sees %s as the source: %s", addrPort(r.Src, r.SrcPort), why))
}

// noteNode says that the packet is met on another node first when its sender is a pod
// there.
func noteNode(out *api.Explanation, who sender, state *publish.State) {
	if who.port.Kind != table.PortUplink {
		return
	}
	switch node := nodeOf(who.addr, state); {
	case node == "":
	case node != state.Node.Name:
		out.Notes = append(out.Notes, fmt.Sprintf("this pod is on node %s, whose Lace meets its packets first: ask that node", node))
	default:
		out.Notes = append(out.Notes, "this pod is on this node, and none of its ports has the address: its device is down or gone, or no route leads to the address, and nothing that it sends comes in; all this is what a client outside with its address would get")
	}
}

// nodeOf is the node that the EndpointSlices give an address, empty when none does.
func nodeOf(a netip.Addr, state *publish.State) string {
	for _, svc := range state.Services {
		for i := range svc.Ports {
			for _, c := range svc.Ports[i].Families {
				for j := range c.Endpoints {
					if c.Endpoints[j].Addr == a {
						return c.Endpoints[j].Node
					}
				}
			}
		}
	}
	return ""
}
