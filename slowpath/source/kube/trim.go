package kube

import (
	"fmt"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/resolve"
)

// trim makes a new object of what is read of one; the rest is left to the collector.
// What was trimmed already comes out equal.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Service:
		return trimService(o), nil
	case *discoveryv1.EndpointSlice:
		return trimSlice(o), nil
	case *corev1.Node:
		return trimNode(o), nil
	case *networkingv1.ServiceCIDR:
		return &networkingv1.ServiceCIDR{ObjectMeta: trimMeta(&o.ObjectMeta, nil, nil), Spec: o.Spec}, nil
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{ObjectMeta: trimMeta(&o.ObjectMeta, sliceLabels, nil)}, nil
	}
	return nil, fmt.Errorf("object of type %T, which was not asked for", object)
}

// Labels and annotations that are read.
var (
	serviceLabels      = []string{resolve.LabelProxyName, corev1.IsHeadlessService}
	serviceAnnotations = []string{resolve.AnnotationDistribution}
	sliceLabels        = []string{discoveryv1.LabelServiceName, resolve.LabelProxyName, corev1.IsHeadlessService}
	sliceAnnotations   = []string{corev1.EndpointsLastChangeTriggerTime}
	nodeLabels         = []string{corev1.LabelTopologyZone}
)

func trimMeta(m *metav1.ObjectMeta, labels, annotations []string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: shared(m.Namespace), UID: m.UID, ResourceVersion: m.ResourceVersion,
		Generation: m.Generation, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: pick(m.Labels, labels), Annotations: pick(m.Annotations, annotations),
	}
}

func pick(from map[string]string, keys []string) (out map[string]string) {
	for _, k := range keys {
		if v, ok := from[k]; ok {
			if out == nil {
				out = make(map[string]string, 1)
			}
			out[k] = v
		}
	}
	return out
}

func trimService(s *corev1.Service) *corev1.Service {
	out := &corev1.Service{ObjectMeta: trimMeta(&s.ObjectMeta, serviceLabels, serviceAnnotations), Spec: s.Spec}
	out.Spec.Selector = nil
	out.Status.LoadBalancer = s.Status.LoadBalancer
	return out
}

func trimNode(n *corev1.Node) *corev1.Node {
	out := &corev1.Node{ObjectMeta: trimMeta(&n.ObjectMeta, nodeLabels, nil), Spec: corev1.NodeSpec{
		PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs, Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable,
	}}
	out.Status.Addresses = n.Status.Addresses
	return out
}

// trimSlice matters most: endpoints are what there is most of. Names of nodes and zones,
// and conditions, are the same few values over and over, and are kept once.
func trimSlice(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  trimMeta(&s.ObjectMeta, sliceLabels, sliceAnnotations),
		AddressType: s.AddressType, Ports: s.Ports,
		Endpoints: make([]discoveryv1.Endpoint, len(s.Endpoints)),
	}
	names := make(map[string]*string)
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		out.Endpoints[i] = discoveryv1.Endpoint{
			Addresses: e.Addresses[:min(1, len(e.Addresses)):min(1, len(e.Addresses))],
			Conditions: discoveryv1.EndpointConditions{
				Ready: truth(e.Conditions.Ready), Serving: truth(e.Conditions.Serving), Terminating: truth(e.Conditions.Terminating),
			},
			NodeName: name(names, e.NodeName), Zone: name(names, e.Zone), Hints: e.Hints, TargetRef: target(e.TargetRef),
		}
	}
	return out
}

// target keeps which object the endpoint is, for people.
func target(t *corev1.ObjectReference) *corev1.ObjectReference {
	if t == nil {
		return nil
	}
	return &corev1.ObjectReference{Kind: shared(t.Kind), Namespace: shared(t.Namespace), Name: t.Name}
}

var yes, no = true, false

func truth(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return &yes
	}
	return &no
}

// name is one pointer for each name in a slice, and one text for each in all of them.
func name(names map[string]*string, s *string) *string {
	if s == nil {
		return nil
	}
	p, ok := names[*s]
	if !ok {
		text := shared(*s)
		p = &text
		names[text] = p
	}
	return p
}

func shared(s string) string { return unique.Make(s).Value() }
