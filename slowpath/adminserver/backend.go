package adminserver

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"sort"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

func (s *Server) backends(r *http.Request) (api.List[api.Backend], error) {
	state := s.node.State()
	if state == nil || state.Generation == 0 { // there may be Problems already
		return list[api.Backend](nil), nil
	}
	tables, err := s.node.Tables()
	if err != nil {
		return api.List[api.Backend]{}, err
	}
	defer tables.Close()
	flows, err := s.flowsByBackend(r.Context())
	if err != nil {
		return api.List[api.Backend]{}, err
	}
	return list(backendsOf(state, tables, flows)), nil
}

// backendsOf lists every endpoint of every Service port; flows are counted by address,
// since Services that share an endpoint share its backend.
func backendsOf(state *publish.State, tables *table.Snapshot, flows map[target]uint64) []api.Backend {
	var out []api.Backend
	here := locally(state)
	for _, svc := range state.Services {
		without := leftOut(tables, svc.Network)
		for i := range svc.Ports {
			p := &svc.Ports[i]
			for _, family := range families {
				c, ok := p.Families[family.number]
				if !ok {
					continue
				}
				for j := range c.Endpoints {
					out = append(out, backendOf(svc, p, &c, &c.Endpoints[j], here, flows, without))
				}
			}
		}
	}
	return out
}

func backendOf(svc *model.Service, p *model.ServicePort, c *model.FamilyChoice, e *model.Endpoint, here *locality, flows map[target]uint64, leftOut func(*model.Endpoint) bool) api.Backend {
	out := api.Backend{
		Namespace: svc.Name.Namespace, Service: svc.Name.Name, Port: portName(p),
		Protocol: p.Protocol.String(), Network: uint32(svc.Network),
		Address: e.Addr.String(), TargetPort: e.Port, Node: e.Node, Zone: e.Zone, Pod: e.Pod,
		Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Local: here.has(e), NoPort: here.pathless(e),
		Flows: flows[target{uint32(svc.Network), netip.AddrPortFrom(e.Addr, e.Port), uint8(p.Protocol)}],
	}
	out.Used, out.Why = used(&c.Internal, e, leftOut)
	if c.External.Tier != "" {
		out.Outside = new(api.Use)
		out.Outside.Used, out.Outside.Why = used(&c.External, e, leftOut)
	}
	return out
}

func portName(p *model.ServicePort) string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprintf("%d/%s", p.Port, p.Protocol)
}

// used looks the endpoint up in a choice, whose lists are sorted by address and port. One that
// was chosen may be left out all the same.
func used(c *model.Choice, e *model.Endpoint, leftOut func(*model.Endpoint) bool) (bool, string) {
	if find(len(c.Endpoints), e, func(i int) *model.Endpoint { return &c.Endpoints[i] }) >= 0 {
		if leftOut(e) {
			return false, reasonTables
		}
		return true, ""
	}
	if i := find(len(c.Excluded), e, func(i int) *model.Endpoint { return &c.Excluded[i].Endpoint }); i >= 0 {
		return false, c.Excluded[i].Reason
	}
	return false, ""
}

// find is the first place of n with the address and port, or -1. It looks at no more than
// log2(n)+2 of them: a Service may have many thousands of endpoints.
func find(n int, e *model.Endpoint, at func(i int) *model.Endpoint) int {
	i, found := sort.Find(n, func(i int) int {
		is := at(i)
		return cmp.Or(e.Addr.Compare(is.Addr), cmp.Compare(e.Port, is.Port))
	})
	if !found {
		return -1
	}
	return i
}
