package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/resolve"
)

const balanced = `
metadata: {name: web, namespace: demo}
spec:
  type: LoadBalancer
  allocateLoadBalancerNodePorts: false
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10, 'fd00:10:96::10']
  ipFamilies: [IPv4, IPv6]
  ports: [{name: http, port: 80}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.1}, {ip: '2001:db8::1'}]}}
`

// TestBalancersOfOthers: what a Service has in its status is served, whoever allocated it and
// whatever families that one has; what only the spec asks for is not.
func TestBalancersOfOthers(t *testing.T) {
	const (
		head = "demo/web LoadBalancer internal=Cluster external=Cluster\nport \"http\" 80/TCP\n  ClusterIP 10.96.0.10 80\n  ClusterIP fd00:10:96::10 80\n"
		v4   = "  LoadBalancer 203.0.113.1 80\n"
		v6   = "  LoadBalancer 2001:db8::1 80\n"
		set4 = "  v4 internal all 10.244.1.5:8080 10.244.2.5:8080\n"
		set6 = "  v6 internal nothing\n"
		out4 = "  v4 external all 10.244.1.5:8080 10.244.2.5:8080\n  v4 cluster all 10.244.1.5:8080 10.244.2.5:8080\n"
		out6 = "  v6 external nothing\n  v6 cluster nothing\n"
	)
	for _, tc := range []struct{ name, svc, want string }{
		{"a balancer of both families", balanced, head + v4 + v6 + set4 + out4 + set6 + out6},
		{"loadBalancerClass does not matter: whoever it names has put the addresses there", edit(balanced, "spec:", "spec:\n  loadBalancerClass: example.com/other"), head + v4 + v6 + set4 + out4 + set6 + out6},
		{"a balancer of IPv4 alone leaves a Service of both families one such address", edit(balanced, ", {ip: '2001:db8::1'}", ""), head + v4 + set4 + out4 + set6 + out6},
		{"a balancer of IPv6 alone likewise", edit(balanced, "{ip: 203.0.113.1}, ", ""), head + v6 + set4 + out4 + set6 + out6},
		{"spec.loadBalancerIP is a wish, and not served", edit(balanced, "spec:", "spec:\n  loadBalancerIP: 203.0.113.9", "{ip: 203.0.113.1}, {ip: '2001:db8::1'}", ""), head + set4 + set6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, problems := resolve.Service(decodeService(t, tc.svc), decodeSlices(t, []string{webSlice}), node)
			if d := cmp.Diff(tc.want, show(s, problems)); d != "" {
				t.Errorf("resolved (-want +got):\n%s", d)
			}
		})
	}
}

// TestNodePortThatWasAskedFor: without allocation of node ports, one that somebody has written
// down is opened all the same.
func TestNodePortThatWasAskedFor(t *testing.T) {
	here := node
	here.NodePorts = addrs("172.30.0.11")
	svc := edit(balanced, "port: 80}", "port: 80, nodePort: 30080}")
	s, problems := resolve.Service(decodeService(t, svc), decodeSlices(t, []string{webSlice}), here)
	if s == nil || len(problems) > 0 || !strings.Contains(show(s, nil), "NodePort 172.30.0.11 30080\n") {
		t.Errorf("%v\n%s", problems, show(s, nil))
	}
}
