package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
)

// Here resolves the node that everything is resolved for. A node without a Node object
// has no zone and no addresses; that is a Problem, and Services go on without them.
func (o *Objects) Here(name string) (model.Node, []model.Problem) {
	n := o.Nodes[name]
	if n == nil {
		return model.Node{Name: name}, []model.Problem{{
			Kind: "Node", Object: name, Reason: "NodeMissing",
			Message: "this node has no Node object, so its zone and addresses are not known: " +
				"zone hints do not work, and /healthz says that no traffic should be sent here. " +
				"Add a Node of this name" + o.orAnother(),
		}}
	}
	return Node(n)
}

// mostNodes are named where another Node may be meant.
const mostNodes = 5

// orAnother is what may be done about a Node that is not there if there are others: take one.
func (o *Objects) orAnother() string {
	names := slices.Sorted(maps.Keys(o.Nodes))
	if len(names) == 0 {
		return "; there is none of any name"
	}
	more := ""
	if n := len(names) - mostNodes; n > 0 {
		names, more = names[:mostNodes], fmt.Sprintf(" and %d more", n)
	}
	return ", or give --node-name the name of one that is there: " + strings.Join(names, ", ") + more
}

// Resolve resolves the Service of that name with its slices. It returns nil for a
// Service that is not proxied or not there; slices of a Service that is not there are
// a Problem each, unless the Objects are Partial.
func (o *Objects) Resolve(name model.Name, node model.Node) (*model.Service, []model.Problem) {
	if svc := o.Services[name]; svc != nil {
		return Service(svc, o.SlicesOf(name), node)
	}
	if o.Partial {
		return nil, nil
	}
	var out []model.Problem
	for _, n := range o.byService[name] {
		out = append(out, model.Problem{
			Kind: "EndpointSlice", Object: n.String(), Field: labelField(discoveryv1.LabelServiceName), Reason: "NoService",
			Message: fmt.Sprintf("there is no Service %s; add it, or correct the label", name),
		})
	}
	return nil, out
}

// All resolves everything for the node: Services sorted by name, Problems in the order
// of their Services. It is the slow and obvious form of resolving by change.
func All(o *Objects, nodeName string) ([]*model.Service, []model.Problem) {
	node, problems := o.Here(nodeName)
	var out []*model.Service
	for _, name := range o.Names() {
		s, ps := o.Resolve(name, node)
		problems = append(problems, ps...)
		if s != nil {
			out = append(out, s)
		}
	}
	return out, problems
}

func labelField(key string) string { return "metadata.labels[" + key + "]" }

// nameOf is the name of an object, with the namespace that an empty one stands for.
func nameOf(namespace, name string) model.Name {
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	return model.Name{Namespace: namespace, Name: name}
}
