package resolve_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// wide is a Service of so many ports, and one slice of it for each thousand of its endpoints.
func wide(ports, endpoints int) (*corev1.Service, []*discoveryv1.EndpointSlice) {
	svc := &corev1.Service{}
	svc.Namespace, svc.Name, svc.Spec.ClusterIP = "demo", "wide", "10.96.0.10"
	var offered []discoveryv1.EndpointPort
	for i := range ports {
		name, number := fmt.Sprintf("p%d", i), int32(8000+i)
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: name, Port: number})
		offered = append(offered, discoveryv1.EndpointPort{Name: &name, Port: &number})
	}
	var slices []*discoveryv1.EndpointSlice
	for at := range endpoints {
		if at%1000 == 0 {
			es := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: offered}
			es.Namespace, es.Name = "demo", fmt.Sprintf("wide-%d", at/1000)
			slices = append(slices, es)
		}
		es := slices[len(slices)-1]
		a := netip.AddrFrom4([4]byte{10, 128 + byte(at>>16), byte(at >> 8), byte(at)})
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()}})
	}
	return svc, slices
}

// TestServiceBeyondTheTables: a Service whose endpoints times ports are more than the tables
// hold is one Problem that says so, and nothing is made of it; its slices have none.
func TestServiceBeyondTheTables(t *testing.T) {
	svc, slices := wide(39, 70_000)
	s, problems := resolve.Service(svc, slices, node)
	if s != nil {
		t.Fatalf("it was resolved, with %d ports", len(s.Ports))
	}
	wantOne(t, problems, "TooManyEndpoints", "2730000 backends", "hold 1048576")
}

// TestFrontendsBeyondTheTables: likewise with addresses times ports.
func TestFrontendsBeyondTheTables(t *testing.T) {
	svc, slices := wide(500, 1)
	for i := range 300 {
		svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String())
	}
	s, problems := resolve.Service(svc, slices, node)
	if s != nil {
		t.Fatalf("it was resolved, with %d ports", len(s.Ports))
	}
	wantOne(t, problems, "TooManyFrontends", "150500 frontends", "hold 131072")
}

func wantOne(t *testing.T, problems []model.Problem, reason string, says ...string) {
	t.Helper()
	if len(problems) != 1 || problems[0].Object != "demo/wide" || problems[0].Kind != "Service" || problems[0].Reason != reason {
		t.Fatalf("Problems %v, want %s of the Service alone", problems, reason)
	}
	for _, words := range says {
		if !strings.Contains(problems[0].Message, words) {
			t.Errorf("%q does not say %q", problems[0].Message, words)
		}
	}
}

// TestOnlyWhatWouldBeServedCounts: endpoints of ports that the Service does not have, and of
// slices that are labelled away, take no room.
func TestOnlyWhatWouldBeServedCounts(t *testing.T) {
	svc, slices := wide(39, 70_000)
	svc.Spec.Ports = svc.Spec.Ports[:1]
	s, problems := resolve.Service(svc, slices, node)
	if s == nil || len(s.Ports[0].Families[4].Endpoints) != 70_000 || len(problems) != 0 {
		t.Errorf("one port of 70,000 endpoints: Problems %v", problems)
	}
	svc, _ = wide(39, 0)
	for _, es := range slices[1:] {
		es.Labels = map[string]string{resolve.LabelProxyName: "other"}
	}
	if s, problems := resolve.Service(svc, slices, node); s == nil || len(problems) != 0 {
		t.Errorf("all slices but one labelled away: Problems %v", problems)
	}
}
