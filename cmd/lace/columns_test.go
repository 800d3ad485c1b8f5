package main

import (
	"testing"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// TestNotServed: each address that a Service asks for and does not have is named, with who has
// it or why nobody has; one without an address by its port.
func TestNotServed(t *testing.T) {
	s := servicePort{port: api.ServicePort{Port: 80, Frontends: []api.Frontend{
		{Kind: "ClusterIP", Address: "10.96.0.10", Port: 80, Served: true},
		{Kind: "ExternalIP", Address: "203.0.113.9", Port: 80, Holder: "Service demo/api"},
		{Kind: "NodePort", Address: "fd30::11", Port: 30080},
		{Kind: "NodePort", Port: 30080, Why: "no IPv4 address of this node is to answer it"},
	}}}
	want := "ExternalIP 203.0.113.9 (of Service demo/api),NodePort [fd30::11]:30080,NodePort 30080 (no IPv4 address of this node is to answer it)"
	if got := s.notServed(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.addresses(); got != "10.96.0.10" {
		t.Errorf("addresses %q", got)
	}
}
