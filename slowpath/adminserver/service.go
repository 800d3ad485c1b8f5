package adminserver

import (
	"net/http"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

func (s *Server) services(*http.Request) (api.List[api.Service], error) {
	state := s.node.State()
	if state == nil || state.Generation == 0 { // there may be Problems already
		return list[api.Service](nil), nil
	}
	tables, err := s.node.Tables()
	if err != nil {
		return api.List[api.Service]{}, err
	}
	defer tables.Close()
	out := make([]api.Service, 0, len(state.Services))
	for _, svc := range state.Services {
		out = append(out, serviceOf(svc, state, tables))
	}
	return list(out), nil
}

func serviceOf(svc *model.Service, state *publish.State, tables *table.Snapshot) api.Service {
	out := api.Service{
		Namespace: svc.Name.Namespace, Name: svc.Name.Name, Network: uint32(svc.Network),
		InternalPolicy: svc.InternalPolicy.String(), ExternalPolicy: svc.ExternalPolicy.String(),
		Affinity: svc.Affinity, Sources: sourcesOf(svc), HealthPort: svc.HealthPort,
		Ports: []api.ServicePort{},
	}
	for i := range svc.Ports {
		out.Ports = append(out.Ports, portOf(svc, &svc.Ports[i], state, tables))
	}
	return out
}

func portOf(svc *model.Service, p *model.ServicePort, state *publish.State, tables *table.Snapshot) api.ServicePort {
	out := api.ServicePort{
		Name: p.Name, Protocol: p.Protocol.String(), Port: p.Port,
		Frontends: []api.Frontend{}, Families: []api.Family{},
	}
	for _, f := range p.Frontends {
		if f.AliasOf.IsValid() {
			continue // the node's own way to another of them
		}
		holder := state.Lost[placeOf(svc, &f)]
		out.Frontends = append(out.Frontends, api.Frontend{
			Kind: f.Kind.String(), Address: f.Addr.String(), Port: f.Port, Holder: holder,
			Served: holder == "" && served(&f, svc.Network, tables),
		})
	}
	out.Frontends = append(out.Frontends, unanswered(p, state)...)
	without, here := leftOut(tables, svc.Network), locally(state)
	for _, family := range families {
		if c, ok := p.Families[family.number]; ok {
			out.Families = append(out.Families, api.Family{
				Family:   family.name,
				Internal: choiceOf(&c.Internal, here, without),
				External: choiceOf(&c.External, here, without),
				Cluster:  choiceOf(&c.Cluster, here, without),
			})
		}
	}
	return out
}

// unanswered are the node ports of a port that no address of the node answers, one for each
// family of the Service of which the Problem NoNodePortAddress speaks.
func unanswered(p *model.ServicePort, state *publish.State) (out []api.Frontend) {
	if p.NodePort == 0 {
		return nil
	}
	for _, family := range families {
		if _, has := p.Families[family.number]; has && slices.Contains(state.Unanswered, family.number) {
			out = append(out, api.Frontend{
				Kind: model.NodePort.String(), Port: p.NodePort,
				Why: "no " + family.name + " address of this node is to answer it",
			})
		}
	}
	return out
}

// sourcesOf lists the source ranges; a family that is closed to everybody is "IPv4:nobody".
func sourcesOf(svc *model.Service) (out []string) {
	for _, family := range families {
		from, restricted := svc.Sources[family.number]
		for _, p := range from {
			out = append(out, p.String())
		}
		if restricted && len(from) == 0 {
			out = append(out, family.name+":nobody")
		}
	}
	return out
}

func placeOf(svc *model.Service, f *model.Frontend) model.Place {
	return model.Place{Service: svc.Name, Network: svc.Network, Addr: f.Addr, Port: f.Port, Protocol: f.Protocol}
}

// served looks the frontend up, whosever it is.
func served(f *model.Frontend, network model.NetworkID, tables *table.Snapshot) bool {
	addr := packet.AddrFrom(f.Addr)
	return tables.Frontend(packet.NetworkID(network), &addr, uint8(f.Protocol), f.Port) != nil
}

// families in the order in which they are shown.
var families = []struct {
	number int
	name   string
}{{4, "IPv4"}, {6, "IPv6"}}

// choiceOf shows a choice; what was chosen and left out after all is with what was not.
func choiceOf(c *model.Choice, here *locality, leftOut func(*model.Endpoint) bool) api.Choice {
	out := api.Choice{Tier: c.Tier, Notes: c.Notes, Endpoints: make([]api.Endpoint, 0, len(c.Endpoints))}
	for i := range c.Excluded {
		x := &c.Excluded[i]
		out.Excluded = append(out.Excluded, api.Exclusion{Endpoint: here.endpoint(&x.Endpoint), Reason: x.Reason})
	}
	for i := range c.Endpoints {
		switch e := &c.Endpoints[i]; {
		case leftOut(e):
			out.Excluded = append(out.Excluded, api.Exclusion{Endpoint: here.endpoint(e), Reason: reasonTables})
		default:
			out.Endpoints = append(out.Endpoints, here.endpoint(e))
		}
	}
	return out
}
