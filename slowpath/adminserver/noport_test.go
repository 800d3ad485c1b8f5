package adminserver

import (
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// TestAnEndpointWithoutAPortIsShown: it is chosen as before, and every list, and explain, say
// that no port of the node has its address; of no other endpoint.
func TestAnEndpointWithoutAPortIsShown(t *testing.T) {
	for _, lost := range []bool{false, true} {
		p := newPlayed(t)
		if lost {
			p.state.Attachments.Ports[2].Addresses = nil
			p.contents.Addresses = p.contents.Addresses[:1]
		}
		c := ask(t, p)
		want := func(where, address string, got bool) {
			t.Helper()
			if got != (lost && address == "10.244.1.5") {
				t.Errorf("the port is lost %v, %s says of %s: %v", lost, where, address, got)
			}
		}
		backends, err := c.Backends(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range backends.Items {
			want("backends", b.Address, b.NoPort)
			if chosen := b.Address != "10.244.2.7"; b.Used != chosen {
				t.Errorf("%s is used %v", b.Address, b.Used)
			}
		}
		services, err := c.Services(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, choice := range []api.Choice{services.Items[0].Ports[0].Families[0].Internal, services.Items[0].Ports[0].Families[0].External} {
			if len(choice.Endpoints) != 2 || len(choice.Excluded) != 1 {
				t.Fatalf("%+v: want two that are chosen", choice)
			}
			for _, e := range choice.Endpoints {
				want("services", e.Address, e.NoPort)
			}
		}
		e, err := c.Explain(t.Context(), "10.244.1.8", "10.96.0.10:80/tcp")
		if lost {
			e, err = c.Explain(t.Context(), "192.0.2.9", "10.96.0.10:80/tcp")
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range e.Eligible.Endpoints {
			want("explain", of.Address, of.NoPort)
		}
		if said := strings.Contains(strings.Join(e.Notes, "\n"), "1 of the endpoints that may be chosen (no-port, 10.244.1.5:8080 the first)"); said != lost {
			t.Errorf("the port is lost %v, notes %q", lost, e.Notes)
		}
	}
}

// TestExplainFromAPodWithoutAPort: whether it is named or its address is, what is told is what a
// client outside would get, and that it is told so; a device that is no port is none that is known.
func TestExplainFromAPodWithoutAPort(t *testing.T) {
	p := newPlayed(t)
	p.state.Attachments.Ports[2].Addresses, p.state.Attachments.Ports[3].Addresses = nil, nil
	p.contents.Addresses = p.contents.Addresses[:1]
	c := ask(t, p)
	const note = "this pod is on this node, and none of its ports has the address"
	for from, want := range map[string]bool{"web-1": true, "default/web-1": true, "10.244.1.5": true, "192.0.2.9": false, "10.244.2.6": false} {
		e, err := c.Explain(t.Context(), from, "10.96.0.10:80/tcp")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(e.Notes, "\n"), note); got != want || e.Port != "eth0" {
			t.Errorf("from %s on %s: notes %q, want the one %v", from, e.Port, e.Notes, want)
		}
	}
	p.state.Attachments.Ports = append(p.state.Attachments.Ports[:3:3], p.state.Attachments.Ports[4:]...)
	if _, err := c.Explain(t.Context(), "shopper", "10.96.0.10:80/tcp"); err == nil || !strings.Contains(err.Error(), "one that is down, or to which no address leads, is none") {
		t.Errorf("from a device that is no port any more: %v", err)
	}
	p.state.Attachments.Ports[0].Addresses = []netip.Addr{ip("10.244.1.5")}
	if e, err := c.Explain(t.Context(), "192.0.2.9", "10.96.0.10:80/tcp"); err != nil || e.Eligible.Endpoints[0].NoPort {
		t.Errorf("an endpoint of the host network is said to have no port: %v", err)
	}
}
