package resolve

import (
	"net/netip"

	"lace-cni.io/lace/control/model"
)

// Pathless says which endpoints are on the node, by their nodeName, and have no way there: none
// of its ports has the address, and no route leads to that address alone, as one may by a device
// that is no port. Whether one is chosen does not depend on it, as it does not with kube-proxy.
// Without a host port no endpoint is said to be one: which addresses are the node's own, those
// of pods on the host network, is not known then.
func Pathless(node string, a *model.Attachments) func(*model.Endpoint) bool {
	known, host := map[netip.Addr]bool{a.Node4: true, a.Node6: true}, false
	for i := range a.Ports {
		host = host || a.Ports[i].Kind == model.PortHost
		for _, own := range a.Ports[i].Addresses {
			known[own] = true
		}
	}
	for _, r := range a.Routes {
		if r.Prefix.IsSingleIP() {
			known[r.Prefix.Addr()] = true
		}
	}
	return func(e *model.Endpoint) bool { return host && node != "" && e.Node == node && !known[e.Addr] }
}
