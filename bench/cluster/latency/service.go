package main

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"lace-cni.io/lace/bench/cluster"
)

const (
	servicePort = 80
	targetPort  = 8080
	floodedPort = 9000 // of the pod, where nobody listens: what comes is dropped before
	firsts      = 5    // Services of a side that answer always
)

// declare makes the Services of a side: those that are asked for the first packet, one whose
// endpoint changes, and the flooded one.
func (s *stage) declare(ctx context.Context, d *side) (err error) {
	for i := range firsts {
		to, err := s.declareOne(ctx, fmt.Sprintf("%s-first-%d", d.name, i), targetPort, d.at[0])
		if err != nil {
			return err
		}
		d.first = append(d.first, to)
	}
	if d.probe, err = s.declareOne(ctx, d.probeName(), targetPort, d.at[0]); err != nil {
		return err
	}
	d.flooded, err = s.declareOne(ctx, d.name+"-flooded", floodedPort, d.at[0])
	return err
}

func (d *side) probeName() string { return d.name + "-probe" }

// declareOne makes a UDP Service with one endpoint.
func (s *stage) declareOne(ctx context.Context, name string, port int32, at netip.Addr) (netip.AddrPort, error) {
	made, err := s.CreateService(ctx, service(name, corev1.ProtocolUDP))
	if err != nil {
		return netip.AddrPort{}, err
	}
	to, err := netip.ParseAddr(made.Spec.ClusterIP)
	if err != nil {
		return netip.AddrPort{}, err
	}
	e := slice(name, corev1.ProtocolUDP, port)
	e.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{at.String()}}}
	return netip.AddrPortFrom(to, servicePort), s.API.Create(ctx, cluster.Slices, e, nil)
}

func service(name string, protocol corev1.Protocol) *corev1.Service {
	s := &corev1.Service{}
	s.Name = name
	s.Spec.Ports = []corev1.ServicePort{{Port: servicePort, Protocol: protocol, TargetPort: intstr.FromInt32(targetPort)}}
	return s
}

func slice(service string, protocol corev1.Protocol, port int32) *discoveryv1.EndpointSlice {
	e := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	e.Name, e.Labels = service, map[string]string{discoveryv1.LabelServiceName: service}
	none := ""
	e.Ports = []discoveryv1.EndpointPort{{Name: &none, Protocol: &protocol, Port: &port}}
	return e
}
