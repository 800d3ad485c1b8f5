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

// WebTarget is the port on which the pods of the Service web listen.
const WebTarget = 8080

// WebPods are the pods behind the Service web, WebPorts the ports of its endpoints.
var (
	WebPods  = []string{"web-1", "web-2", "web-3"}
	WebPorts = []manifests.Port{
		{Name: "http", Protocol: "TCP", Port: WebTarget},
		{Name: "echo", Protocol: "UDP", Port: WebTarget},
	}
)
