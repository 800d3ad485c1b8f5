package compile

import (
	"fmt"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// limits of records that the fast path keeps in maps of fixed size.
const maxAddresses = 65536

// wiring is the attachments as records, in the order in which they are written.
type wiring struct {
	ports     []table.Port
	addresses []table.Address
	routes    []table.Route
	node4     packet.Addr
	node6     packet.Addr
}

// wire translates attachments. What no reader of the snapshot would take is left out
// and becomes a Problem of its port.
func wire(a model.Attachments) (wiring, []model.Problem) {
	w := wirer{seen: map[uint16]bool{}, at: map[place]uint16{}}
	for _, p := range sortedPorts(a.Ports) {
		w.port(p)
	}
	for i := range a.Routes {
		w.route(&a.Routes[i])
	}
	slices.SortFunc(w.addresses, func(a, b table.Address) int { x, y := addressPlace(&a), addressPlace(&b); return x.compare(&y) })
	slices.SortFunc(w.routes, func(a, b table.Route) int { x, y := routePlace(&a), routePlace(&b); return x.compare(&y) })
	if a.Node4.Is4() {
		w.node4 = packet.AddrFrom(a.Node4)
	}
	if a.Node6.Is6() && !a.Node6.Is4In6() {
		w.node6 = packet.AddrFrom(a.Node6)
	}
	return w.wiring, w.problems
}

type wirer struct {
	wiring
	seen     map[uint16]bool
	at       map[place]uint16 // who has the place
	problems []model.Problem
	trial    []byte
}

// accept asks the encoder about one port, so that a wrong one does not cost the others
// their snapshot.
func (w *wirer) accept(p *table.Port) error {
	b, err := table.Encode(w.trial, &table.Contents{Settings: table.DefaultSettings(), Ports: []table.Port{*p}})
	if err == nil {
		w.trial = b
	}
	return err
}

func sortedPorts(ports []model.Port) []model.Port {
	return slices.SortedStableFunc(slices.Values(ports), func(a, b model.Port) int { return int(a.ID) - int(b.ID) })
}

func (w *wirer) problem(device, reason, format string, args ...any) {
	w.problems = append(w.problems, model.Problem{Kind: "Port", Object: device, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (w *wirer) port(p model.Port) {
	r := table.Port{
		ID: p.ID, Kind: table.PortKind(p.Kind), Ifindex: uint32(p.Ifindex), MTU: uint32(p.MTU),
		Network: packet.NetworkID(p.Network), HostMAC: p.HostMAC, PeerMAC: p.PeerMAC,
	}
	if p.Delivery == model.Stack {
		r.Flags |= table.PortStack
	}
	if p.Near {
		r.Flags |= table.PortNear
	}
	err := r.SetDevice(p.Device)
	if err == nil {
		err = w.accept(&r)
	}
	switch {
	case err != nil:
		w.problem(p.Device, "BadPort", "the port is not used: %v", err)
		return
	case w.seen[p.ID]:
		w.problem(p.Device, "DuplicatePort", "the port is not used: its id %d is that of another port; restart the agent", p.ID)
		return
	}
	w.seen[p.ID] = true
	w.ports = append(w.ports, r)
	for _, a := range p.Addresses {
		w.address(&p, table.Address{Addr: packet.AddrFrom(a), Network: r.Network, Port: p.ID})
	}
}

func (w *wirer) address(p *model.Port, a table.Address) {
	here := addressPlace(&a)
	other, taken := w.at[here]
	switch {
	case a.Addr == packet.Addr{}:
		w.problem(p.Device, "BadAddress", "an address behind the port is unspecified and is ignored; remove it")
	case taken && other != p.ID:
		w.problem(p.Device, "DuplicateAddress", "%s is behind port %d too, which keeps it; one address can be in one place only", a.Addr, other)
	case taken:
	case len(w.addresses) >= maxAddresses:
		w.problem(p.Device, "TableFull", "%s is not served: the node has more than %d addresses", a.Addr, maxAddresses)
	default:
		w.at[here] = p.ID
		w.addresses = append(w.addresses, a)
	}
}

func (w *wirer) route(r *model.Route) {
	device := fmt.Sprintf("%d", r.Port)
	if !r.Prefix.IsValid() || r.Prefix.Addr().Is4In6() || packet.NetworkID(r.Network) > packet.MaxNetworkID {
		w.problem(device, "BadRoute", "route %s in network %d is ignored: it is no prefix of a network", r.Prefix, r.Network)
		return
	}
	if !w.seen[r.Port] {
		w.problem(device, "BadRoute", "route %s is ignored: there is no port %d", r.Prefix, r.Port)
		return
	}
	out := table.Route{
		Prefix: packet.AddrFrom(r.Prefix.Masked().Addr()), Network: packet.NetworkID(r.Network),
		Port: r.Port, Bits: uint8(r.Prefix.Bits()),
	}
	if out.Prefix.Is4() {
		out.Bits += 96
	}
	here := routePlace(&out)
	if other, taken := w.at[here]; taken {
		if other != r.Port {
			w.problem(device, "DuplicateRoute", "route %s leads through port %d too, which keeps it", r.Prefix, other)
		}
		return
	}
	w.at[here] = r.Port
	w.routes = append(w.routes, out)
}
