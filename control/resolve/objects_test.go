package resolve_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

func TestNode(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       model.Node
		problem    string
	}{
		{"zone, internal addresses and pod prefixes", `
metadata: {name: n1, labels: {topology.kubernetes.io/zone: za}}
spec: {podCIDR: 10.9.9.0/24, podCIDRs: [10.244.1.7/24, "fd00:10:244:1::/64"]}
status: {addresses: [{type: InternalIP, address: 172.30.0.11}, {type: ExternalIP, address: 203.0.113.9}, {type: Hostname, address: n1}, {type: InternalIP, address: "fd30::11"}, {type: InternalIP, address: 172.30.0.11}]}
`, model.Node{Name: "n1", Zone: "za", Addresses: addrs("172.30.0.11", "fd30::11"), PodCIDRs: prefixes("10.244.1.0/24", "fd00:10:244:1::/64")}, ""},
		{"the single pod prefix counts when there is no list", "metadata: {name: n1}\nspec: {podCIDR: 10.9.9.0/24}",
			model.Node{Name: "n1", PodCIDRs: prefixes("10.9.9.0/24")}, ""},
		{"a wrong address costs itself only", "metadata: {name: n1}\nstatus: {addresses: [{type: InternalIP, address: n1.example.org}, {type: InternalIP, address: 172.30.0.11}]}",
			model.Node{Name: "n1", Addresses: addrs("172.30.0.11")}, "! Node n1 status.addresses[0].address BadAddress\n"},
		{"a wrong prefix costs itself only", "metadata: {name: n1}\nspec: {podCIDRs: [10.244.1.0, 10.244.2.0/24]}",
			model.Node{Name: "n1", PodCIDRs: prefixes("10.244.2.0/24")}, "! Node n1 spec.podCIDRs[0] BadPrefix\n"},
		{"a wrong single prefix", "metadata: {name: n1}\nspec: {podCIDR: x}", model.Node{Name: "n1"}, "! Node n1 spec.podCIDR BadPrefix\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, problems := resolve.Node(decode[corev1.Node](t, tc.text))
			if d := cmp.Diff(tc.want, got, cmpNet); d != "" {
				t.Errorf("node (-want +got):\n%s", d)
			}
			if got := strings.TrimPrefix(show(nil, problems), "not proxied\n"); got != tc.problem {
				t.Errorf("problems %q, want %q", got, tc.problem)
			}
		})
	}
}

// TestOrphans: a slice that names no Service is named, until the Service appears.
func TestOrphans(t *testing.T) {
	o := resolve.NewObjects()
	o.PutNode("n1", decode[corev1.Node](t, "metadata: {name: n1}"))
	o.PutSlice(demo("web-1"), decodeSlices(t, []string{webSlice})[0])
	services, problems := resolve.All(o, "n1")
	if d := cmp.Diff("not proxied\n! EndpointSlice demo/web-1 metadata.labels[kubernetes.io/service-name] NoService\n", show(nil, problems)); len(services) != 0 || d != "" {
		t.Errorf("%d services; problems (-want +got):\n%s", len(services), d)
	}
	o.Partial = true
	if _, problems = resolve.All(o, "n1"); len(problems) != 0 {
		t.Errorf("while its Service may still come: problems %v", problems)
	}
	o.Partial = false
	o.PutService(demo("web"), decodeService(t, web))
	services, problems = resolve.All(o, "n1")
	if len(services) != 1 || len(problems) != 0 {
		t.Errorf("with its Service: %d services, problems %v", len(services), problems)
	}
	o.PutService(demo("web"), nil)
	if services, problems = resolve.All(o, "n1"); len(services) != 0 || len(problems) != 1 {
		t.Errorf("its Service is gone again: %d services, problems %v", len(services), problems)
	}
}

// TestNodeAddresses: everything that the object gives to the node, whatever kind it says it is.
func TestNodeAddresses(t *testing.T) {
	n := decode[corev1.Node](t, `
metadata: {name: n1}
status: {addresses: [{type: ExternalIP, address: 203.0.113.9}, {type: Hostname, address: n1}, {type: InternalIP, address: "fd30::11"}, {type: InternalIP, address: 172.30.0.11}, {type: ExternalIP, address: 172.30.0.11}]}
`)
	if d := cmp.Diff(addrs("172.30.0.11", "203.0.113.9", "fd30::11"), resolve.NodeAddresses(n), cmpNet); d != "" {
		t.Errorf("addresses (-want +got):\n%s", d)
	}
}

// TestNodeMissing: a node that nobody declared serves all the same, without a zone.
func TestNodeMissing(t *testing.T) {
	o := resolve.NewObjects()
	o.PutService(demo("web"), decodeService(t, web))
	services, problems := resolve.All(o, "n9")
	if len(services) != 1 || len(problems) != 1 || problems[0].Reason != "NodeMissing" {
		t.Errorf("%d services, problems %v; want one service, NodeMissing", len(services), problems)
	}
	if text := problems[0].Message; !strings.HasSuffix(text, "Add a Node of this name; there is none of any name") || strings.Contains(text, "port") {
		t.Errorf("message %q: want what to do, and nothing of node ports, which are not programmed", text)
	}
	for i, want := range []string{
		"or give --node-name the name of one that is there: n0",
		"there: n0, n1", "there: n0, n1, n2", "there: n0, n1, n2, n3", "there: n0, n1, n2, n3, n4",
		"there: n0, n1, n2, n3, n4 and 1 more", "there: n0, n1, n2, n3, n4 and 2 more",
	} {
		name := fmt.Sprintf("n%d", i)
		o.PutNode(name, decode[corev1.Node](t, "metadata: {name: "+name+"}"))
		if _, problems := o.Here("n9"); len(problems) != 1 || !strings.HasSuffix(problems[0].Message, want) {
			t.Errorf("%d Nodes: %v, want one that ends in %q", i+1, problems, want)
		}
	}
}

// TestOneBrokenObjectAmongAThousand: the others do not notice.
func TestOneBrokenObjectAmongAThousand(t *testing.T) {
	o := resolve.NewObjects()
	o.PutNode("n1", decode[corev1.Node](t, "metadata: {name: n1}"))
	for i := range 1000 {
		svc, slice := thousand(t, i)
		if i == 500 {
			svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "fd00::bad::1", nil
		}
		o.PutService(demo(svc.Name), svc)
		o.PutSlice(demo(slice.Name), slice)
	}
	services, problems := resolve.All(o, "n1")
	if len(services) != 999 || len(problems) != 1 || problems[0].Object != "demo/s500" {
		t.Fatalf("%d services resolved, problems %v; want 999 and one about demo/s500", len(services), problems)
	}
	for _, s := range services {
		if n := len(s.Ports[0].Families[4].Internal.Endpoints); n != 2 {
			t.Errorf("%s has %d endpoints, want 2", s.Name, n)
		}
	}
}

// TestSlicesAreFoundByService drives the index with random edits and compares it with
// a search through all slices.
func TestSlicesAreFoundByService(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	o := resolve.NewObjects()
	names, owners := []string{"a", "b", "c", "d", "e"}, []string{"", "s1", "s2", "s3"}
	for range 3000 {
		n := demo(names[rng.IntN(len(names))])
		was := ownerOf(o.Slices[n])
		var now string
		if rng.IntN(4) == 0 {
			checkTouched(t, o.PutSlice(n, nil), was, "")
		} else {
			es := &discoveryv1.EndpointSlice{}
			now = owners[rng.IntN(len(owners))]
			es.Namespace, es.Name, es.Labels = n.Namespace, n.Name, map[string]string{discoveryv1.LabelServiceName: now}
			checkTouched(t, o.PutSlice(n, es), was, now)
		}
		for _, s := range owners[1:] {
			var want, got []string
			for _, es := range o.Slices {
				if ownerOf(es) == s {
					want = append(want, es.Name)
				}
			}
			slices.Sort(want)
			for _, es := range o.SlicesOf(demo(s)) {
				got = append(got, es.Name)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("slices of %s (-want +got):\n%s", s, d)
			}
		}
	}
}

func ownerOf(es *discoveryv1.EndpointSlice) string {
	if es == nil {
		return ""
	}
	return es.Labels[discoveryv1.LabelServiceName]
}

func checkTouched(t *testing.T, got []model.Name, was, now string) {
	t.Helper()
	var want []model.Name
	if was != "" {
		want = append(want, demo(was))
	}
	if now != "" && now != was {
		want = append(want, demo(now))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("touched by a slice of %q that becomes one of %q (-want +got):\n%s", was, now, d)
	}
}
