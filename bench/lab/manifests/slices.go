package manifests

import (
	"bytes"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// State is how ready an endpoint says it is.
type State uint8

const (
	Ready    State = iota
	NotReady       // and not serving
	Draining       // terminating, and still serving
	Gone           // terminating, and not serving any more
)

// Endpoint is one pod behind a Service, with an address of each family.
type Endpoint struct {
	Pod   string
	Node  string
	Zone  string
	Addr4 netip.Addr
	Addr6 netip.Addr
	State State
}

// Port is one port of a Service's endpoints.
type Port struct {
	Name     string
	Protocol corev1.Protocol
	Port     int32
}

// Slices writes the EndpointSlices of a Service in the default namespace as YAML, one
// for each family. Without endpoints there are still two slices, empty.
func Slices(service string, ports []Port, endpoints []Endpoint) ([]byte, error) {
	var out bytes.Buffer
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		b, err := yaml.Marshal(slice(service, family, ports, endpoints))
		if err != nil {
			return nil, fmt.Errorf("EndpointSlice of %s, %s: %w", service, family, err)
		}
		out.WriteString("---\n")
		out.Write(b)
	}
	return out.Bytes(), nil
}

func slice(service string, family discoveryv1.AddressType, ports []Port, endpoints []Endpoint) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{},
	}
	s.Namespace = metav1.NamespaceDefault
	s.Name = service + "-ipv4"
	if family == discoveryv1.AddressTypeIPv6 {
		s.Name = service + "-ipv6"
	}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	for _, p := range ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.Port})
	}
	for _, e := range endpoints {
		addr := e.Addr4
		if family == discoveryv1.AddressTypeIPv6 {
			addr = e.Addr6
		}
		s.Endpoints = append(s.Endpoints, e.in(addr))
	}
	return s
}

// Conditions are the three of an EndpointSlice.
type Conditions struct{ Ready, Serving, Terminating bool }

// Conditions says what the state means in an EndpointSlice.
func (e Endpoint) Conditions() Conditions {
	return Conditions{
		Ready:       e.State == Ready,
		Serving:     e.State == Ready || e.State == Draining,
		Terminating: e.State == Draining || e.State == Gone,
	}
}

func (e Endpoint) in(addr netip.Addr) discoveryv1.Endpoint {
	c := e.Conditions()
	return discoveryv1.Endpoint{
		Addresses:  []string{addr.String()},
		NodeName:   &e.Node,
		Zone:       &e.Zone,
		Conditions: discoveryv1.EndpointConditions{Ready: &c.Ready, Serving: &c.Serving, Terminating: &c.Terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: e.Pod},
	}
}
