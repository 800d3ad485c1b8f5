package resolve

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
)

// oversized says that one Service asks for more than the tables of a node hold, before
// anything is made of it: every port has every endpoint, and a few pages of text may be
// millions of records, which would cost the node its memory and all other Services their turn.
func oversized(served []servicePort, from []origin, slices []*discoveryv1.EndpointSlice, r *report) bool {
	const instead = "it is not served at all, and no other Service waits for it; split it into several"
	if n := len(served) * len(from); n > model.MaxFrontends {
		r.add("spec.ports", "TooManyFrontends", "%d ports at %d addresses are %d frontends, and the tables hold %d; %s",
			len(served), len(from), n, model.MaxFrontends, instead)
		return true
	}
	if n := backendsOf(served, slices); n > model.MaxBackends {
		r.add("", "TooManyEndpoints", "the endpoints of all its ports are %d backends, and the tables hold %d; %s", n, model.MaxBackends, instead)
		return true
	}
	return false
}

// backendsOf counts the endpoints of every port as they are written, those that are wrong or
// written twice among them.
func backendsOf(served []servicePort, slices []*discoveryv1.EndpointSlice) (n int) {
	type key struct {
		name     string
		protocol model.Protocol
	}
	wanted := make(map[key]bool, len(served))
	for i := range served {
		wanted[key{served[i].Name, served[i].Protocol}] = true
	}
	for _, es := range slices {
		if labelled(es.Labels) != "" {
			continue
		}
		offered := make(map[key]bool, len(es.Ports))
		for i := range es.Ports {
			proto, ok := protocol(value(es.Ports[i].Protocol))
			if k := (key{value(es.Ports[i].Name), proto}); ok && wanted[k] {
				offered[k] = true
			}
		}
		n += len(offered) * len(es.Endpoints)
	}
	return n
}
