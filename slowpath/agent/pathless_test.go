package agent

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/publish"
)

// strandable is n1 with a port of the addresses, and Services whose endpoints, words of
// Service, address, and node where it is not n1, are chosen unless they are said to be out.
func strandable(ported string, endpoints ...string) *publish.State {
	s := &publish.State{Attachments: model.Attachments{Ports: []model.Port{
		{Kind: model.PortHost, Addresses: []netip.Addr{netip.MustParseAddr("172.30.0.11")}}, {Kind: model.PortPod},
	}}}
	for _, a := range strings.Fields(ported) {
		s.Attachments.Ports[1].Addresses = append(s.Attachments.Ports[1].Addresses, netip.MustParseAddr(a))
	}
	for _, text := range endpoints {
		words := strings.Fields(text)
		e := model.Endpoint{Addr: netip.MustParseAddr(words[1]), Port: 8080, Node: "n1", Pod: "demo/" + words[0] + "-1"}
		if slices.Contains(words, "elsewhere") {
			e.Node = "n2"
		}
		c := model.FamilyChoice{Endpoints: []model.Endpoint{e}}
		switch {
		case slices.Contains(words, "out"):
			c.Internal.Excluded = []model.Exclusion{{Endpoint: e, Reason: "not-ready"}}
		case slices.Contains(words, "outside"):
			c.External.Endpoints = c.Endpoints
		default:
			c.Internal.Endpoints = c.Endpoints
		}
		p := model.ServicePort{
			Frontends: []model.Frontend{{Addr: netip.MustParseAddr("10.96.0.10"), Port: 80}},
			Families:  map[int]model.FamilyChoice{4: c},
		}
		name := model.Name{Namespace: "demo", Name: words[0]}
		if n := len(s.Services); n > 0 && s.Services[n-1].Name == name {
			s.Services[n-1].Ports = append(s.Services[n-1].Ports, p)
			continue
		}
		s.Services = append(s.Services, &model.Service{Name: name, Ports: []model.ServicePort{p}})
	}
	return s
}

// TestEndpointsToWhichNothingLeads are told of once that has lasted, one Problem for each
// Service, and no longer when something leads there or nobody is to go there.
func TestEndpointsToWhichNothingLeads(t *testing.T) {
	type step struct {
		after time.Duration // since the step before
		state *publish.State
		want  string // Services, and a word of the message where it follows after a colon
	}
	const short, long = pathlessFor - time.Second, pathlessFor
	lost, mended := strandable("", "web 10.244.1.3"), strandable("10.244.1.3", "web 10.244.1.3")
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"one that lasts", []step{{0, lost, ""}, {short, lost, ""}, {time.Second, lost, "web:10.244.1.3:8080 (pod demo/web-1)"}, {long, lost, "web:ip route get 10.244.1.3"}}},
		{"one that is mended before", []step{{0, lost, ""}, {short, mended, ""}, {short, lost, ""}, {short, lost, ""}}},
		{"one that is mended after", []step{{0, lost, ""}, {long, lost, "web:"}, {time.Second, mended, ""}}},
		{"one whose EndpointSlice says that it is gone", []step{{0, lost, ""}, {short, strandable("", "web 10.244.1.3 out"), ""}, {long, strandable("", "web 10.244.1.3 out"), ""}}},
		{"other changes do not begin it anew", []step{{0, lost, ""}, {short, strandable("10.244.1.4", "web 10.244.1.3"), ""}, {time.Second, lost, "web:"}}},
		{"several are one Problem of each Service", []step{
			{0, strandable("", "a 10.244.1.3", "b 10.244.1.3", "b 10.244.1.4", "b 10.244.1.4"), ""},
			{long, strandable("", "a 10.244.1.3", "b 10.244.1.3", "b 10.244.1.4", "b 10.244.1.4"), "a: b:(and 1 more of its endpoints)"}}},
		{"one that clients outside get alone", []step{{0, strandable("", "web 10.244.1.3 outside"), ""}, {long, strandable("", "web 10.244.1.3 outside"), "web:"}}},
		{"another node's", []step{{0, strandable("", "web 10.244.2.3 elsewhere"), ""}, {long, strandable("", "web 10.244.2.3 elsewhere"), ""}}},
		{"one of the host network", []step{{0, strandable("", "web 172.30.0.11"), ""}, {long, strandable("", "web 172.30.0.11"), ""}}},
		{"one with the address of a Service is offered to nobody, which is told elsewhere", []step{{0, strandable("", "web 10.96.0.10"), ""}, {long, strandable("", "web 10.96.0.10"), ""}}},
		{"nothing is published", []step{{0, nil, ""}, {long, nil, ""}}},
		{"one that answers behind a device that is no port", []step{{0, strandable("", "web 10.244.9.2"), ""}, {long, strandable("", "web 10.244.9.2"), ""}}},
		{"one whose neighbour is behind another device than the routes say", []step{{0, strandable("", "web 10.244.9.3"), ""}, {long, strandable("", "web 10.244.9.3"), "web:"}}},
		{"one that never answered there", []step{{0, strandable("", "web 10.244.9.4"), ""}, {long, strandable("", "web 10.244.9.4"), "web:"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			w := newPathlessWatch(&Config{NodeName: "n1", Stack: withTap(t)})
			w.now = func() time.Time { return now }
			for i, s := range c.steps {
				now = now.Add(s.after)
				got, want := w.look(s.state), fieldsOf(s.want)
				if len(got) != len(want) {
					t.Fatalf("step %d: Problems %v, want %q", i, got, want)
				}
				for j, p := range got {
					name, word, _ := strings.Cut(want[j], ":")
					if p.Kind != "Service" || p.Object != "demo/"+name || p.Reason != "EndpointWithoutPort" || !strings.Contains(p.Message, word) {
						t.Errorf("step %d: Problem %+v, want one of %s that says %q", i, p, name, word)
					}
				}
			}
		})
	}
}

// fieldsOf splits before every word that a Service's name and a colon begin.
func fieldsOf(s string) (out []string) {
	for _, word := range strings.Fields(s) {
		if name, _, named := strings.Cut(word, ":"); named && len(name) <= 3 {
			out = append(out, word)
			continue
		}
		out[len(out)-1] += " " + word
	}
	return out
}

// withTap has two bridges that are no pods': 10.244.9.2 has shown itself behind the one to
// which the routes lead, 10.244.9.3 behind the other.
func withTap(t *testing.T) *netdev.Fake {
	t.Helper()
	f := fakeNode(t)
	for _, name := range []string{"br0", "br1"} {
		if _, err := f.AddLink(netdev.Link{Name: name, Kind: netdev.KindBridge, MTU: 1500, Up: true, Ethernet: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.AddAddress("br0", "10.244.9.1/24"); err != nil {
		t.Fatal(err)
	}
	for device, addr := range map[string]string{"br0": "10.244.9.2", "br1": "10.244.9.3"} {
		if err := f.SetNeighbour(device, addr, netdev.MAC{2, 0, 0, 0, 0, 9}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}
