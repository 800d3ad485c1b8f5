package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// TestNodePortAddresses: node ports are answered at addresses that the node has, and of
// them at those that were asked for.
func TestNodePortAddresses(t *testing.T) {
	host := model.Attachments{
		Node4: addrs("172.30.0.11")[0], Node6: addrs("fd30::11")[0],
		Ports: []model.Port{
			{Kind: model.PortHost, Addresses: addrs("172.30.0.11", "192.0.2.11", "10.244.1.1", "fd30::11", "2001:db8::11")},
			{Kind: model.PortPod, Addresses: addrs("10.244.1.5")},
		},
	}
	object := model.Node{Name: "n1", Addresses: addrs("172.30.0.11", "fd30::11", "203.0.113.5")}
	all := []string{"10.244.1.1", "172.30.0.11", "192.0.2.11", "2001:db8::11", "fd30::11"}
	for _, tc := range []struct {
		name, flag string
		node       model.Node
		at         model.Attachments
		want       []string
	}{
		{"by default at the internal addresses of the Node object that the node has", "", object, host, []string{"172.30.0.11", "fd30::11"}},
		{"primary says the same", "primary", object, host, []string{"172.30.0.11", "fd30::11"}},
		{"without a Node object at the addresses by which others know the node", "primary", model.Node{}, host, []string{"172.30.0.11", "fd30::11"}},
		{"all is every address", "all", object, host, all},
		{"a prefix picks from its family and leaves the other whole", "192.0.2.0/24", object, host, []string{"192.0.2.11", "2001:db8::11", "fd30::11"}},
		{"a prefix of each family", "192.0.2.0/24, fd30::/16", object, host, []string{"192.0.2.11", "fd30::11"}},
		{"a prefix that fits nothing picks nothing of its family", "198.51.100.0/24,fd30::/16", object, host, []string{"fd30::11"}},
		{"zero prefixes are every address", "0.0.0.0/0,::/0", object, host, all},
		{"primary and a prefix add up", "primary,192.0.2.0/24", object, host, []string{"172.30.0.11", "192.0.2.11", "fd30::11"}},
		{"without a host port there is no address", "all", object, model.Attachments{Node4: addrs("172.30.0.11")[0]}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, err := resolve.ParseNodePorts(tc.flag)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(addrs(tc.want...), n.Of(tc.node, &tc.at), cmpNet); d != "" {
				t.Errorf("addresses (-want +got):\n%s", d)
			}
			again, err := resolve.ParseNodePorts(n.String())
			if err != nil || again.String() != n.String() {
				t.Errorf("%q is read as %q, %v", n, again, err)
			}
		})
	}
	for _, wrong := range []string{"172.30.0.11", "Primary", "localhost", "::ffff:10.0.0.0/104", "10.0.0.0/33"} {
		if n, err := resolve.ParseNodePorts(wrong); err == nil {
			t.Errorf("%q is taken as %q", wrong, n)
		}
	}
}

// TestRestricted: node ports are at chosen addresses when a word or a prefix chooses some.
func TestRestricted(t *testing.T) {
	for flag, want := range map[string]bool{"": false, "all": false, "primary": true, "172.30.0.0/24": true, "primary,fd30::/64": true} {
		n, err := resolve.ParseNodePorts(flag)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Restricted(); got != want {
			t.Errorf("%q: restricted %v, want %v", flag, got, want)
		}
	}
}

// TestNodePortsOfAFolder: a Service that an API server would have given node ports has one
// Problem, of the first port that has none, whatever others have; and none where none is wanted.
func TestNodePortsOfAFolder(t *testing.T) {
	const three = "[{name: a, port: 80, nodePort: 30080}, {name: b, port: 81}, {name: c, port: 82}]"
	for _, c := range []struct{ name, spec, ports, field, says string }{
		{"one port", "type: NodePort", "[{port: 80}]", "spec.ports[0].nodePort", "none is written, and nothing here allocates one, so the port has none; write a number, or make the type ClusterIP"},
		{"two of three", "type: NodePort", three, "spec.ports[1].nodePort", "none is written, nor for another port, and"},
		{"three", "type: NodePort", "[{name: a, port: 80}, {name: b, port: 81}, {name: c, port: 82}]", "spec.ports[0].nodePort", "nor for 2 more ports, and"},
		{"a balancer's", "type: LoadBalancer", three, "spec.ports[1].nodePort", "or allocateLoadBalancerNodePorts: false where none is wanted"},
		{"a balancer's that wants them", "type: LoadBalancer, allocateLoadBalancerNodePorts: true", three, "spec.ports[1].nodePort", ""},
		{"a balancer's that wants none", "type: LoadBalancer, allocateLoadBalancerNodePorts: false", three, "", ""},
		{"only a balancer's may want none", "type: NodePort, allocateLoadBalancerNodePorts: false", "[{port: 80}]", "spec.ports[0].nodePort", "make the type ClusterIP"},
		{"other types have none", "type: ClusterIP", "[{port: 80}]", "", ""},
		{"all are written", "type: NodePort", "[{port: 80, nodePort: 30080}]", "", ""},
	} {
		svc := decodeService(t, "metadata: {namespace: demo, name: web}\nspec: {clusterIP: 10.96.0.10, "+c.spec+", ports: "+c.ports+"}")
		s, problems := resolve.Service(svc, nil, model.Node{Name: "n1"})
		if s == nil || (c.field == "") != (len(problems) == 0) || len(problems) > 1 {
			t.Errorf("%s: Problems %v, want one %v, and the Service", c.name, problems, c.field != "")
			continue
		}
		if len(problems) == 1 && (problems[0].Field != c.field || problems[0].Reason != "NoNodePort" || !strings.Contains(problems[0].Message, c.says)) {
			t.Errorf("%s: %+v, want %s: %s", c.name, problems[0], c.field, c.says)
		}
	}
}
