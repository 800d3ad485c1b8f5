package adminserver

import (
	"net"
	"net/http"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

func (s *Server) ports(r *http.Request) (api.List[api.Port], error) {
	state := s.node.State()
	if state == nil {
		return list[api.Port](nil), nil
	}
	routes := make(map[uint16][]string)
	for _, to := range state.Attachments.Routes {
		routes[to.Port] = append(routes[to.Port], to.Prefix.String())
	}
	policed, flows := s.policed(), s.flowsByPort(r.Context())
	var out []api.Port
	for _, p := range state.Attachments.Ports {
		one := api.Port{
			ID: p.ID, Kind: p.Kind.String(), Device: p.Device, Index: p.Ifindex, MTU: p.MTU,
			Network: uint32(p.Network), HostMAC: mac(p.HostMAC), PeerMAC: mac(p.PeerMAC), Routes: routes[p.ID], Policed: policed[p.ID], Flows: flows[p.ID],
		}
		if p.Kind != model.PortHost {
			one.Delivery = p.Delivery.String()
		}
		for _, a := range p.Addresses {
			one.Addresses = append(one.Addresses, a.String())
		}
		out = append(out, one)
	}
	return list(out), nil
}

// policed is what the kernel's programs have held back, by port.
func (s *Server) policed() map[uint16]uint64 {
	out := make(map[uint16]uint64)
	if _, kernel := s.node.Counts(); kernel != nil {
		for i := range kernel.Policed {
			out[kernel.Policed[i].Port] = kernel.Policed[i].Sum()
		}
	}
	return out
}

// mac writes an address, nothing for none.
func mac(m [6]byte) string {
	if m == ([6]byte{}) {
		return ""
	}
	return net.HardwareAddr(m[:]).String()
}
