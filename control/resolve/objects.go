package resolve

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"lace-cni.io/lace/control/model"
)

// Objects is the declared state: every object that a source delivered last. The maps
// are for reading; the methods change them, so that slices are found by Service. Not
// safe for concurrent use. Objects that were put in are never changed.
type Objects struct {
	Services map[model.Name]*corev1.Service
	Slices   map[model.Name]*discoveryv1.EndpointSlice
	Nodes    map[string]*corev1.Node

	ServiceCIDRs map[string]*networkingv1.ServiceCIDR

	// Partial says that Services which are not proxied may have been left out, so that a
	// slice whose Service is not here is no mistake.
	Partial bool

	byService map[model.Name][]model.Name // sorted names of slices
	onNode    map[string]int              // endpoints, by the node that they name
}

// NewObjects returns an empty state.
func NewObjects() *Objects {
	return &Objects{
		Services: map[model.Name]*corev1.Service{},
		Slices:   map[model.Name]*discoveryv1.EndpointSlice{},
		Nodes:    map[string]*corev1.Node{},

		ServiceCIDRs: map[string]*networkingv1.ServiceCIDR{},

		byService: map[model.Name][]model.Name{}, onNode: map[string]int{},
	}
}

// PutService adds or replaces a Service; nil removes it.
func (o *Objects) PutService(n model.Name, s *corev1.Service) {
	if s == nil {
		delete(o.Services, n)
		return
	}
	o.Services[n] = s
}

// PutSlice adds or replaces an EndpointSlice; nil removes it. It returns the Services
// whose resolution may differ now: up to two, when the slice changed hands.
func (o *Objects) PutSlice(n model.Name, s *discoveryv1.EndpointSlice) (touched []model.Name) {
	before, had := o.owner(n)
	o.countNodes(o.Slices[n], -1)
	o.countNodes(s, 1)
	if s == nil {
		delete(o.Slices, n)
	} else {
		o.Slices[n] = s
	}
	after, has := o.owner(n)
	if had {
		touched = append(touched, before)
	}
	if has && !(had && after == before) {
		touched = append(touched, after)
	}
	if had == has && before == after {
		return touched
	}
	if had {
		o.unlink(before, n)
	}
	if has {
		o.link(after, n)
	}
	return touched
}

// PutNode adds or replaces a Node; nil removes it.
func (o *Objects) PutNode(name string, n *corev1.Node) {
	if n == nil {
		delete(o.Nodes, name)
		return
	}
	o.Nodes[name] = n
}

// SlicesOf returns the EndpointSlices that name the Service, sorted by name.
func (o *Objects) SlicesOf(service model.Name) []*discoveryv1.EndpointSlice {
	names := o.byService[service]
	out := make([]*discoveryv1.EndpointSlice, len(names))
	for i, n := range names {
		out[i] = o.Slices[n]
	}
	return out
}

// Names returns every Service that exists or is named by a slice, sorted.
func (o *Objects) Names() []model.Name {
	out := make([]model.Name, 0, len(o.Services))
	for n := range o.Services {
		out = append(out, n)
	}
	for n := range o.byService {
		if o.Services[n] == nil {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, model.Name.Compare)
	return out
}

// owner is the Service that slice n names, if it names one.
func (o *Objects) owner(n model.Name) (model.Name, bool) {
	s := o.Slices[n]
	if s == nil || s.Labels[discoveryv1.LabelServiceName] == "" {
		return model.Name{}, false
	}
	return model.Name{Namespace: n.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}, true
}

func (o *Objects) link(service, slice model.Name) {
	names := o.byService[service]
	i, _ := slices.BinarySearchFunc(names, slice, model.Name.Compare)
	o.byService[service] = slices.Insert(names, i, slice)
}

func (o *Objects) unlink(service, slice model.Name) {
	names := o.byService[service]
	i, found := slices.BinarySearchFunc(names, slice, model.Name.Compare)
	if !found {
		return
	}
	if names = slices.Delete(names, i, i+1); len(names) == 0 {
		delete(o.byService, service)
		return
	}
	o.byService[service] = names
}
