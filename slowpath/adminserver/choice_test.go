package adminserver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/source/dir"
)

// chosenFrom has a Service with an endpoint for every fate, and one whose endpoints hints
// narrow.
const chosenFrom = `
apiVersion: v1
kind: Service
metadata: {name: shown, namespace: demo}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.96.0.30, externalIPs: [203.0.113.130], ports: [{name: http, port: 80, nodePort: 30030}]}
status: {loadBalancer: {ingress: [{ip: 203.0.113.30}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shown-1, namespace: demo, labels: {kubernetes.io/service-name: shown}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.244.1.5], nodeName: n1}
- {addresses: [10.244.2.6], nodeName: n2}
- {addresses: [10.244.2.7], nodeName: n2, conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.244.2.8], nodeName: n2, conditions: {ready: false}}
- {addresses: [10.244.2.9]}
- {addresses: [10.96.0.31], nodeName: n1}
---
apiVersion: v1
kind: Service
metadata: {name: near, namespace: demo}
spec: {clusterIP: 10.96.0.31, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: near-1, namespace: demo, labels: {kubernetes.io/service-name: near}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.244.1.5], nodeName: n1, hints: {forZones: [{name: a}]}}
- {addresses: [10.244.2.6], nodeName: n2, hints: {forZones: [{name: b}]}}
`

// compiled is a played node whose tables are made of objects, as the agent makes them.
type compiled struct {
	*played
	tables []byte
}

func (c *compiled) Tables() (*table.Snapshot, error) { return table.Load(c.tables) }

func newCompiled(t *testing.T, text string) *compiled {
	t.Helper()
	p := newPlayed(t)
	p.state.Attachments.Ports[0].Addresses = []netip.Addr{ip("172.30.0.11")}
	for i := range p.state.Attachments.Ports {
		p.state.Attachments.Ports[i].ID = uint16(i + 1)
	}
	o := resolve.NewObjects()
	o.PutNode("n1", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}})
	read, problems := dir.Decode("f.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, r := range read {
		switch v := r.Object.(type) {
		case *corev1.Service:
			o.PutService(r.Name, v)
		case *discoveryv1.EndpointSlice:
			o.PutSlice(r.Name, v)
		}
	}
	here, _ := o.Here("n1")
	here.NodePorts = resolve.NodePorts{}.Of(here, &p.state.Attachments)
	here.Aliases = resolve.Own(&p.state.Attachments)
	c := compile.New(nil)
	c.SetSettings(table.DefaultSettings())
	c.SetAttachments(p.state.Attachments)
	p.state.Node, p.state.Services = here, nil
	for _, n := range o.Names() {
		if s, _ := o.Resolve(n, here); s != nil {
			p.state.Services = append(p.state.Services, s)
			c.SetService(s)
		}
	}
	b, _, err := c.Snapshot(7, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return &compiled{p, b}
}

// outcome is a choice in words.
func outcome(c *api.Choice) string {
	if c == nil {
		return "none"
	}
	out := c.Tier + ":"
	for _, e := range c.Endpoints {
		out += " " + e.Address
	}
	for _, x := range c.Excluded {
		out += fmt.Sprintf(" -%s %s", x.Endpoint.Address, x.Reason)
	}
	return strings.Join(append([]string{out}, c.Notes...), "; ")
}

// TestExplainTellsTheChoice: from every origin, at every kind of address, explain tells among
// which endpoints the choice is, which rule chose them, and why every other one is none of
// them; the pipeline chooses each of them and nothing else.
func TestExplainTellsTheChoice(t *testing.T) {
	const (
		every  = "all: 10.244.1.5 10.244.2.6 10.244.2.9 -10.244.2.7 terminating-others-ready -10.244.2.8 not-ready -10.96.0.31 not-in-tables"
		local  = "local: 10.244.1.5 -10.244.2.6 not-local -10.244.2.7 not-local -10.244.2.8 not-ready -10.244.2.9 node-unknown -10.96.0.31 not-in-tables"
		nearby = "hinted-zone: 10.244.1.5 -10.244.2.6 hinted-to-other-zones"
	)
	pod, outside, otherNodesPod := "10.244.1.8", "192.0.2.9", "10.244.2.6"
	c := ask(t, newCompiled(t, chosenFrom))
	for _, tc := range []struct {
		name, to, want, whose string
		from                  []string
	}{
		{"the ClusterIP gives everybody the same", "10.96.0.30:80/tcp", every, "everybody at the ClusterIP, internalTrafficPolicy Cluster", []string{pod, "host", outside, otherNodesPod}},
		{"a node port under Local gives clients outside what is here", "172.30.0.11:30030/tcp", local, "clients outside at the NodePort, externalTrafficPolicy Local", []string{outside, otherNodesPod}},
		{"and pods here, and the node, all there is", "172.30.0.11:30030/tcp", every, "the node and its pods at the NodePort, whatever externalTrafficPolicy says", []string{pod, "host"}},
		{"a balancer's address likewise, from outside", "203.0.113.30:80/tcp", local, "clients outside at the LoadBalancer, externalTrafficPolicy Local", []string{outside}},
		{"and from inside", "203.0.113.30:80/tcp", every, "the node and its pods at the LoadBalancer, whatever externalTrafficPolicy says", []string{pod, "host"}},
		{"an external address likewise, from outside", "203.0.113.130:80/tcp", local, "clients outside at the ExternalIP, externalTrafficPolicy Local", []string{outside}},
		{"and from a pod", "203.0.113.130:80/tcp", every, "the node and its pods at the ExternalIP, whatever externalTrafficPolicy says", []string{pod}},
		{"hints that narrow are the rule, and the reason", "10.96.0.31:80/tcp", nearby, "everybody at the ClusterIP, internalTrafficPolicy Cluster", []string{pod, "host", outside}},
		{"a port that no Service has gives nothing", "10.96.0.30:81/tcp", "none", "", []string{pod}},
		{"an address that no Service has neither", "10.244.2.6:8080/tcp", "none", "", []string{pod}},
	} {
		for _, from := range tc.from {
			t.Run(tc.name+", "+from, func(t *testing.T) {
				met := map[string]bool{}
				for range 60 {
					e, err := c.Explain(t.Context(), from, tc.to)
					if err != nil {
						t.Fatal(err)
					}
					if got := outcome(e.Eligible); got != tc.want || e.Whose != tc.whose {
						t.Fatalf("%q, %s; want %q, %s", got, e.Whose, tc.want, tc.whose)
					}
					if e.Backend != "" {
						met[strings.TrimSuffix(e.Backend, ":8080")] = true
					}
				}
				var want []string
				if words := strings.Fields(tc.want); len(words) > 1 {
					for _, w := range words[1:] {
						if strings.HasPrefix(w, "-") {
							break
						}
						want = append(want, w)
					}
				}
				for _, w := range want {
					if !met[w] {
						t.Errorf("%s is eligible, and the pipeline never chose it", w)
					}
					delete(met, w)
				}
				for w := range met {
					t.Errorf("the pipeline chose %s, which is not eligible", w)
				}
			})
		}
	}
}

// TestExplainOfARefusalSaysWhyEveryEndpointIsOut: where nothing is chosen, that is what people
// ask for.
func TestExplainOfARefusalSaysWhyEveryEndpointIsOut(t *testing.T) {
	text := strings.ReplaceAll(chosenFrom, "{addresses: [10.244.1.5], nodeName: n1}", "{addresses: [10.244.1.5], nodeName: n1, conditions: {ready: false}}")
	text = strings.ReplaceAll(text, "- {addresses: [10.96.0.31], nodeName: n1}\n", "")
	e, err := ask(t, newCompiled(t, text)).Explain(t.Context(), "192.0.2.9", "172.30.0.11:30030/tcp")
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(e.Eligible); e.Reason != "no-local-endpoint" || !strings.Contains(got, "-10.244.1.5 not-ready") || !strings.Contains(got, "-10.244.2.6 not-local") {
		t.Errorf("%s: %q", e.Reason, got)
	}
}

// TestAnEndpointWithTheAddressOfAServiceIsNotUsed: whatever was chosen, the tables leave it
// out, and every list says so, of every kind of client; others are used as before.
func TestAnEndpointWithTheAddressOfAServiceIsNotUsed(t *testing.T) {
	c := ask(t, newCompiled(t, chosenFrom))
	backends, err := c.Backends(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, b := range backends.Items {
		if b.Service == "shown" && b.Local {
			got[b.Address] = fmt.Sprintf("%v %s, outside %v %s", b.Used, b.Why, b.Outside.Used, b.Outside.Why)
		}
	}
	want := map[string]string{"10.244.1.5": "true , outside true ", "10.96.0.31": "false not-in-tables, outside false not-in-tables"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	list, err := c.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	family := list.Items[1].Ports[0].Families[0]
	const out = "-10.244.2.7 terminating-others-ready -10.244.2.8 not-ready -10.96.0.31 not-in-tables"
	for audience, is := range map[string][2]string{
		"inside":   {outcome(&family.Internal), "all: 10.244.1.5 10.244.2.6 10.244.2.9 " + out},
		"cluster":  {outcome(&family.Cluster), "all: 10.244.1.5 10.244.2.6 10.244.2.9 " + out},
		"external": {outcome(&family.External), "local: 10.244.1.5 -10.244.2.6 not-local -10.244.2.7 not-local -10.244.2.8 not-ready -10.244.2.9 node-unknown -10.96.0.31 not-in-tables"},
	} {
		if is[0] != is[1] {
			t.Errorf("%s: %q, want %q", audience, is[0], is[1])
		}
	}
}

// TestServicesShowEveryChoice: the list has every address, whether it is served, and of each
// choice what explain says of it; hints that were not obeyed are told with the reason.
func TestServicesShowEveryChoice(t *testing.T) {
	text := strings.Replace(chosenFrom, "hints: {forZones: [{name: b}]}", "hints: {}", 1)
	c := ask(t, newCompiled(t, text))
	list, err := c.Services(t.Context())
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d Services, %v", len(list.Items), err)
	}
	near, shown := &list.Items[0].Ports[0], &list.Items[1].Ports[0]
	var addresses []string
	for _, f := range shown.Frontends {
		addresses = append(addresses, fmt.Sprintf("%s %s:%d %v", f.Kind, f.Address, f.Port, f.Served))
	}
	if want := []string{"ClusterIP 10.96.0.30:80 true", "NodePort 172.30.0.11:30030 true", "LoadBalancer 203.0.113.30:80 true", "ExternalIP 203.0.113.130:80 true"}; !slices.Equal(addresses, want) {
		t.Errorf("addresses %q, want %q", addresses, want)
	}
	family := shown.Families[0]
	for name, c := range map[string]*api.Choice{"internal": &family.Internal, "external": &family.External, "cluster": &family.Cluster} {
		if n := len(c.Endpoints) + len(c.Excluded); n != 6 {
			t.Errorf("%s tells of %d endpoints of 6: %s", name, n, outcome(c))
		}
	}
	if got := outcome(&near.Families[0].Internal); !strings.HasSuffix(got, "; zone-hints-incomplete") {
		t.Errorf("near: %q, want the note that hints are incomplete", got)
	}
	backends, err := c.Backends(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range backends.Items {
		switch {
		case b.Service == "near" && b.Outside != nil:
			t.Errorf("%s is reached by its ClusterIP alone, and tells of clients outside", b.Service)
		case b.Service == "shown" && b.Address == "10.244.2.6" && (!b.Used || b.Outside == nil || b.Outside.Used || b.Outside.Why != "not-local"):
			t.Errorf("%+v, outside %+v: want it used inside, and not-local outside", b, b.Outside)
		}
	}
}
