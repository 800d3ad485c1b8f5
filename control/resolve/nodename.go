package resolve

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
)

// nodeNames are the names that the endpoints of a slice give to their nodes; slices that do
// not count name none.
func nodeNames(es *discoveryv1.EndpointSlice, visit func(endpoint int, name string)) {
	if es == nil || es.AddressType == discoveryv1.AddressTypeFQDN || labelled(es.Labels) != "" {
		return
	}
	for i := range es.Endpoints {
		if name := value(es.Endpoints[i].NodeName); name != "" {
			visit(i, name)
		}
	}
}

// countNodes counts the endpoints of a slice in (n = 1) or out (n = -1), by node.
func (o *Objects) countNodes(es *discoveryv1.EndpointSlice, n int) {
	nodeNames(es, func(_ int, name string) {
		if o.onNode[name] += n; o.onNode[name] == 0 {
			delete(o.onNode, name)
		}
	})
}

// NodesMissing are the Problems of nodes that endpoints name and that have no Node object, one
// each: almost always a slip in a name, by which an endpoint of this node is taken to be
// elsewhere. This node's own, here, is told of by Here, and without any Node nothing is said.
// The cost is the number of nodes, and of endpoints only when one is missing.
func (o *Objects) NodesMissing(here string) (out []model.Problem) {
	missing := map[string]place{}
	for name := range o.onNode {
		if o.Nodes[name] == nil && name != here && len(o.Nodes) > 0 {
			missing[name] = place{}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for slice, es := range o.Slices {
		nodeNames(es, func(i int, name string) {
			first, is := missing[name]
			if is && (first.field == "" || slice.Compare(first.slice) < 0) {
				missing[name] = place{slice, fmt.Sprintf("endpoints[%d].nodeName", i)}
			}
		})
	}
	for name, first := range missing {
		out = append(out, o.nodeMissing(name, first))
	}
	return out
}

// place is where a node is named first.
type place struct {
	slice model.Name
	field string
}

// nodeMissing is the Problem of the EndpointSlice that names the node first. Where an API has
// the objects it is one of the node: a node that is removed goes before its endpoints, and
// which of them is the first changes until they are gone.
func (o *Objects) nodeMissing(name string, first place) model.Problem {
	name = model.Excerpt(name)
	if o.Partial {
		return model.Problem{Kind: "Node", Object: name, Reason: "NodeMissing",
			Message: "endpoints are on this node by their EndpointSlices, and it has no Node object; where it was not removed just now, correct their nodeName, or add the Node"}
	}
	return model.Problem{Kind: "EndpointSlice", Object: first.slice.String(), Field: first.field, Reason: "NodeMissing",
		Message: fmt.Sprintf("there is no Node %q, so whatever is said to be there counts as on another node than this; correct the name wherever it is written, or add a Node of that name", name)}
}
