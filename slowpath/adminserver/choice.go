package adminserver

import (
	"fmt"
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

// reasonTables is why an endpoint that was chosen gets nothing after all: the tables leave
// out one with the address of a Service, and say so in a Problem.
const reasonTables = "not-in-tables"

// leftOut says which chosen endpoints of a network the tables leave out.
func leftOut(tables *table.Snapshot, network model.NetworkID) func(*model.Endpoint) bool {
	return func(e *model.Endpoint) bool {
		addr := packet.AddrFrom(e.Addr)
		return tables.IsVIP(packet.NetworkID(network), &addr)
	}
}

// noteChoice tells among which endpoints the choice for the sender is, and why others are
// none of them.
func noteChoice(out *api.Explanation, who sender, to destination, tables *table.Snapshot, state *publish.State) {
	addr := packet.AddrFrom(to.addr.Addr())
	f := tables.Frontend(who.port.Network, &addr, uint8(to.protocol), to.addr.Port())
	if f == nil {
		return
	}
	outside := who.port.Kind == table.PortUplink
	inUse := members(tables, f, outside)
	for _, exact := range []bool{true, false} {
		for _, svc := range state.Services {
			for i := range svc.Ports {
				kind, has := doorOf(&svc.Ports[i], to)
				c, ok := choiceFor(&svc.Ports[i], kind, outside, to.addr.Addr())
				if has && ok && decides(c, inUse, exact) {
					out.Service, out.Whose = svc.Name.String(), whose(svc, kind, outside)
					out.Eligible = eligible(c, inUse, locally(state))
					return
				}
			}
		}
	}
}

// members are the backends that new flows get, by address and port.
func members(tables *table.Snapshot, f *table.Frontend, outside bool) map[netip.AddrPort]bool {
	set := f.Inside
	if outside {
		set = f.Outside
	}
	out := make(map[netip.AddrPort]bool)
	for _, id := range tables.Set(set) {
		if b := tables.Backend(id); b != nil {
			out[netip.AddrPortFrom(b.Addr.Netip(), b.Port)] = true
		}
	}
	return out
}

// doorOf is what kind of address of a Service port the destination is. The alias of an address
// is what that one is.
func doorOf(p *model.ServicePort, to destination) (kind model.FrontendKind, has bool) {
	for _, f := range p.Frontends {
		if f.Protocol == to.protocol && netip.AddrPortFrom(f.Addr, f.Port) == to.addr {
			return f.Kind, true
		}
	}
	return 0, false
}

// choiceFor is the choice that decides for clients of that kind at an address of that kind.
func choiceFor(p *model.ServicePort, kind model.FrontendKind, outside bool, addr netip.Addr) (*model.Choice, bool) {
	number := 4
	if addr.Is6() {
		number = 6
	}
	c, ok := p.Families[number]
	switch {
	case kind == model.ClusterIP:
		return &c.Internal, ok
	case outside:
		return &c.External, ok
	}
	return &c.Cluster, ok
}

// decides says whether what is in use follows from a choice: all of it was chosen, and exact,
// nothing else was. Where nothing fits, another Service has the frontend, or the tables are
// newer than the choice.
func decides(c *model.Choice, inUse map[netip.AddrPort]bool, exact bool) bool {
	n := 0
	for i := range c.Endpoints {
		if inUse[netip.AddrPortFrom(c.Endpoints[i].Addr, c.Endpoints[i].Port)] {
			n++
		}
	}
	return n == len(inUse) && (!exact || n == len(c.Endpoints))
}

func eligible(c *model.Choice, inUse map[netip.AddrPort]bool, here *locality) *api.Choice {
	out := choiceOf(c, here, func(e *model.Endpoint) bool { return !inUse[netip.AddrPortFrom(e.Addr, e.Port)] })
	return &out
}

// whose says for whom the choice holds, and by which policy.
func whose(svc *model.Service, kind model.FrontendKind, outside bool) string {
	switch {
	case kind == model.ClusterIP:
		return fmt.Sprintf("everybody at the ClusterIP, internalTrafficPolicy %s", svc.InternalPolicy)
	case outside:
		return fmt.Sprintf("clients outside at the %s, externalTrafficPolicy %s", kind, svc.ExternalPolicy)
	}
	return fmt.Sprintf("the node and its pods at the %s, whatever externalTrafficPolicy says", kind)
}
