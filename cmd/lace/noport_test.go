package main

import (
	"strings"
	"testing"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// TestNoPortInEveryTable: an endpoint that is chosen and has no port is shown as chosen, with
// the word beside it; why one is not chosen comes first.
func TestNoPortInEveryTable(t *testing.T) {
	lost := api.Endpoint{Address: "10.244.1.3", Port: 8080, NoPort: true}
	choice := api.Choice{Tier: "all", Endpoints: []api.Endpoint{{Address: "10.244.1.2", Port: 8080}, lost}, Excluded: []api.Exclusion{{Endpoint: lost, Reason: "not-ready"}}}
	services := []api.Service{{Ports: []api.ServicePort{{Families: []api.Family{{Internal: choice}}}}}}
	row := func(write func(b *strings.Builder) error, at string) string {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if strings.Contains(line, at) {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	backend := func(is api.Backend) string {
		is.Address = "10.244.1.3"
		return row(func(b *strings.Builder) error {
			return screen.WriteTable(b, screen.Table, backendColumns, []api.Backend{is})
		}, "10.244.1.3")
	}
	for _, c := range []struct{ name, got, want string }{
		{"backends, one that is used", backend(api.Backend{Used: true, NoPort: true}), "true 0 no-port"},
		{"backends, one that is not", backend(api.Backend{Why: "not-ready", NoPort: true}), "false 0 not-ready"},
		{"services", row(func(b *strings.Builder) error {
			return screen.WriteTable(b, screen.Wide, serviceColumns, servicePorts(services))
		}, "10.244.1.3"), "10.244.1.2:8080 10.244.1.3:8080(no-port) 1 not-ready"},
		{"explain", row(func(b *strings.Builder) error {
			return writeEligible(b, screen.Table, api.Explanation{Eligible: &choice})
		}, "10.244.1.3"), "true no-port"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, c.got, c.want)
		}
	}
	if !choosesNoPort(services) {
		t.Error("that one without a port is chosen is not said")
	}
	services[0].Ports[0].Families[0].Internal.Endpoints = choice.Endpoints[:1]
	if choosesNoPort(services) {
		t.Error("one that is not chosen is said to be")
	}
}
