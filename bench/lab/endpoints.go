package lab

import "lace-cni.io/lace/bench/lab/manifests"

// Endpoint describes a host as an endpoint of a Service.
func (h *Host) Endpoint(state manifests.State) manifests.Endpoint {
	return manifests.Endpoint{
		Pod: h.Name, Node: h.Node, Zone: zones[h.Node],
		Addr4: h.Addr4, Addr6: h.Addr6, State: state,
	}
}

// zones of the nodes, as the manifests label them.
var zones = map[string]string{"n1": "a", "n2": "b"}
