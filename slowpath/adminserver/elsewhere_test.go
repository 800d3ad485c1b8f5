package adminserver

import (
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
)

// TestExplainGoesByTheRoutesOfTheNode: what the node itself sends to a Service reaches Lace only
// by a route to lace0. Where there is another or none, explain does not invent it; pods do not
// need it.
func TestExplainGoesByTheRoutesOfTheNode(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		routed         map[string]string
		verdict, says  string
	}{
		{"by the default route", "host", "10.96.0.10:80/tcp", map[string]string{"10.96.0.10": "eth0"}, "pass", "leaves by eth0 and not by lace0"},
		{"by no route", "host", "10.96.0.10:80/tcp", map[string]string{"10.96.0.10": ""}, "pass", "has no route to 10.96.0.10"},
		{"to what no Service has", "host", "10.96.9.9:80/tcp", map[string]string{"10.96.9.9": "eth0"}, "pass", "leaves by eth0"},
		{"by the trunk", "host", "10.96.0.10:80/tcp", nil, "forward", "the node's route brings the packet to lace0"},
		{"a pod, whose device meets it", "web-1", "10.96.0.10:80/tcp", map[string]string{"10.96.0.10": "eth0"}, "forward", "the program on vethA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlayed(t)
			p.routed = c.routed
			got, err := ask(t, p).Explain(t.Context(), c.from, c.to)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != c.verdict || !strings.Contains(got.Steps[0].Text, c.says) || (got.Backend != "") != (c.verdict == "forward") {
				t.Errorf("%s, backend %q, steps %v; want %s and %q", got.Verdict, got.Backend, got.Steps, c.verdict, c.says)
			}
		})
	}
}

// TestServicesSayWhoHasTheirAddresses: a place that somebody else has is not served for this
// Service, although packets to it are, and what is sent there is that one's.
func TestServicesSayWhoHasTheirAddresses(t *testing.T) {
	p := newPlayed(t)
	web, twin := p.state.Services[0], *p.state.Services[0]
	twin.Name.Name = "dup"
	p.state.Services = append(p.state.Services, &twin)
	f := web.Ports[0].Frontends[0]
	p.state.Lost = model.Lost{placeOf(&twin, &f): "Service default/web"}
	c := ask(t, p)
	list, err := c.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, last := list.Items[0].Ports[0].Frontends[0], list.Items[2].Ports[0].Frontends[0]
	if !first.Served || first.Holder != "" || last.Served || last.Holder != "Service default/web" {
		t.Errorf("web has %+v, dup has %+v", first, last)
	}
	e, err := c.Explain(t.Context(), "web-1", "10.96.0.10:80/tcp")
	if err != nil || e.Service != "default/web" {
		t.Errorf("explain names Service %q (%v), want the one that has the address", e.Service, err)
	}
}

// TestPortsCountTheirFlows, closed ones among them: they fill the share of the port.
func TestPortsCountTheirFlows(t *testing.T) {
	p := newPlayed(t)
	p.register(t, netip.MustParseAddrPort("10.244.1.8:4000"), netip.MustParseAddrPort("10.244.1.5:8080"), netip.MustParseAddrPort("10.244.1.8:4000"))
	p.register(t, netip.MustParseAddrPort("10.244.1.8:4001"), netip.MustParseAddrPort("10.244.1.5:8080"), netip.MustParseAddrPort("10.244.1.8:4001"))
	p.register(t, netip.MustParseAddrPort("192.0.2.9:4000"), netip.MustParseAddrPort("10.244.1.5:8080"), netip.MustParseAddrPort("192.0.2.9:4000"))
	p.reset(t)
	ports, err := ask(t, p).Ports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range ports.Items {
		if want := map[string]uint64{"shopper": 2, "eth0": 1}[one.Device]; one.Flows != want {
			t.Errorf("%s has %d flows, want %d", one.Device, one.Flows, want)
		}
	}
}
