package adminserver

import (
	"net/netip"
	"slices"
	"strings"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
)

// sender is where the packet of an explanation begins.
type sender struct {
	addr netip.Addr
	port *table.Port // on which the packet is met
}

// locate finds the address and the port from which the origin sends to an address of
// the given family.
func locate(o origin, to netip.Addr, state *publish.State, tables *table.Snapshot) (sender, error) {
	switch {
	case o.host:
		return hostSender(to, state, tables)
	case o.name != "":
		return namedSender(o.name, to, state, tables)
	}
	if o.addr.Is4() != to.Is4() {
		return sender{}, badQuestion("from %s and to %s are of two families; Services do not translate between them", o.addr, to)
	}
	return addressSender(o.addr, tables)
}

// hostSender is the node itself: its packets to Services leave by lace0, with the source
// of that route.
func hostSender(to netip.Addr, state *publish.State, tables *table.Snapshot) (sender, error) {
	addr := state.Attachments.Node4
	if to.Is6() {
		addr = state.Attachments.Node6
	}
	port := tables.Port(table.HostPort)
	switch {
	case port == nil:
		return sender{}, notFound("the node itself is no port yet: lace0 is missing, start lace-fastpath")
	case !addr.IsValid():
		return sender{}, notFound("the node has no address of the family of %s", to)
	}
	return sender{addr, port}, nil
}

// addressSender finds the port behind which an address lives, or the uplink through
// which it comes.
func addressSender(a netip.Addr, tables *table.Snapshot) (sender, error) {
	key := packet.AddrFrom(a)
	if here := tables.Address(0, &key); here != nil {
		return sender{a, tables.Port(here.Port)}, nil
	}
	id, ok := tables.Route(0, &key)
	if !ok {
		return sender{}, notFound("no port of the node leads to %s: compare `ip route get %s` with `lace get ports -o wide`", a, a)
	}
	port := tables.Port(id)
	if port.Kind == table.PortHost {
		return sender{}, notFound("%s is behind a device that is no port of Lace, or is a pod whose device is down or gone, or that the node has not seen yet: compare `ip route get %s` with `lace get ports -o wide`", a, a)
	}
	return sender{a, port}, nil
}

// namedSender finds a pod of this node by its name in the EndpointSlices, or a port by
// its device.
func namedSender(name string, to netip.Addr, state *publish.State, tables *table.Snapshot) (sender, error) {
	pods := podsNamed(name, state)
	switch {
	case len(pods) > 1:
		return sender{}, badQuestion("pod %q is in several namespaces: say one of %s", name, strings.Join(podNames(pods), ", "))
	case len(pods) == 1:
		return podSender(pods[0], to, tables)
	}
	for _, p := range state.Attachments.Ports {
		if p.Device == name {
			return deviceSender(p, to, tables)
		}
	}
	return sender{}, notFound("no endpoint of a Service is a pod %q, and no port of this node is a device of that name: one that is down, or to which no address leads, is none. Lace knows only pods behind Services by name: say the pod's address or its device (`lace get ports` lists both)", name)
}

// pod is one pod with all addresses that endpoints give it.
type pod struct {
	name  string
	addrs []netip.Addr
}

func podNames(pods []pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.name)
	}
	return out
}

// podsNamed collects the pods whose full name, or name alone, is the given one.
func podsNamed(name string, state *publish.State) []pod {
	found := make(map[string][]netip.Addr)
	for _, svc := range state.Services {
		for i := range svc.Ports {
			for _, c := range svc.Ports[i].Families {
				collectPods(name, c.Endpoints, found)
			}
		}
	}
	var out []pod
	for full, addrs := range found {
		slices.SortFunc(addrs, netip.Addr.Compare)
		out = append(out, pod{full, slices.Compact(addrs)})
	}
	slices.SortFunc(out, func(a, b pod) int { return strings.Compare(a.name, b.name) })
	return out
}

func collectPods(name string, endpoints []model.Endpoint, found map[string][]netip.Addr) {
	for i := range endpoints {
		e := &endpoints[i]
		_, short, _ := strings.Cut(e.Pod, "/")
		if e.Pod != "" && (e.Pod == name || short == name) {
			found[e.Pod] = append(found[e.Pod], e.Addr)
		}
	}
}

func podSender(p pod, to netip.Addr, tables *table.Snapshot) (sender, error) {
	for _, a := range p.addrs {
		if a.Is4() == to.Is4() {
			return addressSender(a, tables)
		}
	}
	return sender{}, notFound("pod %s has no address of the family of %s", p.name, to)
}

func deviceSender(p model.Port, to netip.Addr, tables *table.Snapshot) (sender, error) {
	port := tables.Port(p.ID)
	for _, a := range p.Addresses {
		if a.Is4() == to.Is4() && port != nil {
			return sender{a, port}, nil
		}
	}
	if p.Kind == model.PortUplink {
		return sender{}, notFound("%s is an uplink, through which many clients come: say the address of the client", p.Device)
	}
	return sender{}, notFound("no address of the family of %s is behind %s", to, p.Device)
}
