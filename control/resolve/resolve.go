package resolve

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
)

// Objects is the declared state: what the source delivered last.
type Objects struct {
	Services map[model.Name]*corev1.Service
	Slices   map[model.Name]*discoveryv1.EndpointSlice
	Nodes    map[string]*corev1.Node
}

// Service resolves one Service for one node.
func Service(svc *corev1.Service, slices []*discoveryv1.EndpointSlice, node model.Node) (*model.Service, []model.Problem) {
	return nil, nil
}

// Node resolves one Node.
func Node(n *corev1.Node) (model.Node, []model.Problem) { return model.Node{}, nil }

// All resolves everything.
func All(o *Objects, nodeName string) ([]*model.Service, []model.Problem) { return nil, nil }
