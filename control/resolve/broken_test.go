package resolve_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/resolve"
)

// TestOneMistakeOneProblem: each mistake is named with its field, and costs nothing but
// itself: whatever else the object says goes on.
func TestOneMistakeOneProblem(t *testing.T) {
	first := edit(webShown, " 10.244.2.5:8080", "")
	for _, tc := range []struct {
		name       string
		svc, slice string
		want       string // of the Service; empty: as if the mistake were not there
		problem    string
	}{
		{"address is no address", edit(web, "10.96.0.10", "10.96.0.300"), webSlice, "not proxied\n", "Service demo/web spec.clusterIP BadAddress"},
		{"address has leading zeros", edit(web, "10.96.0.10", "010.96.0.10"), webSlice, "not proxied\n", "Service demo/web spec.clusterIP BadAddress"},
		{"address is multicast", edit(web, "10.96.0.10", "224.0.0.5"), webSlice, "not proxied\n", "Service demo/web spec.clusterIP BadAddress"},
		{"address is IPv4 in IPv6 form", edit(web, "10.96.0.10", "'::ffff:10.96.0.10'"), webSlice, "not proxied\n", "Service demo/web spec.clusterIP BadAddress"},
		{"address has a zone", edit(web, "10.96.0.10", "'2001:db8::1%eth0'"), webSlice, "not proxied\n", "Service demo/web spec.clusterIP BadAddress"},
		{"address is the unspecified one", edit(web, "10.96.0.10", "0.0.0.0"), webSlice, "not proxied\n", "Service demo/web spec.clusterIP BadAddress"},
		{"no address", edit(web, "  clusterIP: 10.96.0.10\n", ""), webSlice, "not proxied\n", "Service demo/web spec.clusterIP NoAddress"},
		{"no port", edit(web, "[{name: http, port: 80}]", "[]"), webSlice, "not proxied\n", "Service demo/web spec.ports NoPorts"},
		{"one of two addresses is of a family that is not listed", edit(web, "spec:", "spec:\n  ipFamilies: [IPv4]\n  clusterIPs: [10.96.0.10, 'fd00:10:96::10']"), webSlice, "", "Service demo/web spec.clusterIPs[1] WrongFamily"},
		{"two addresses of one family", edit(web, "spec:", "spec:\n  clusterIPs: [10.96.0.10, 10.96.0.11]"), webSlice, "", "Service demo/web spec.clusterIPs[1] SecondAddress"},
		{"a family without an address", edit(web, "spec:", "spec:\n  ipFamilies: [IPv4, IPv6]"), webSlice, "", "Service demo/web spec.ipFamilies NoAddress"},
		{"an unknown family", edit(web, "spec:", "spec:\n  ipFamilies: [IPv4, IPX]"), webSlice, "", "Service demo/web spec.ipFamilies[1] UnknownFamily"},
		{"clusterIP is not the first of clusterIPs", edit(web, "clusterIP: 10.96.0.10", "clusterIP: 10.96.0.11\n  clusterIPs: [10.96.0.10]"), webSlice, "", "Service demo/web spec.clusterIP Contradiction"},
		{"port 0", edit(web, "[{name: http, port: 80}]", "[{name: zero, port: 0}, {name: http, port: 80}]"), webSlice, "", "Service demo/web spec.ports[0].port BadPort"},
		{"port above 65535", edit(web, "[{name: http, port: 80}]", "[{name: http, port: 80}, {name: big, port: 65536}]"), webSlice, "", "Service demo/web spec.ports[1].port BadPort"},
		{"unknown protocol", edit(web, "[{name: http, port: 80}]", "[{name: ping, port: 1, protocol: ICMP}, {name: http, port: 80}]"), webSlice, "", "Service demo/web spec.ports[0].protocol UnknownProtocol"},
		{"a name twice", edit(web, "[{name: http, port: 80}]", "[{name: http, port: 80}, {name: http, port: 81}]"), webSlice, "", "Service demo/web spec.ports[1].name DuplicateName"},
		{"a port twice", edit(web, "[{name: http, port: 80}]", "[{name: http, port: 80}, {name: web, port: 80}]"), webSlice, "", "Service demo/web spec.ports[1].port DuplicatePort"},
		{"unknown type", edit(web, "spec:", "spec:\n  type: Clusterip"), webSlice, "", "Service demo/web spec.type UnknownType"},
		{"unknown policy", edit(web, "spec:", "spec:\n  internalTrafficPolicy: local"), webSlice, "", "Service demo/web spec.internalTrafficPolicy UnknownPolicy"},
		{"unknown distribution", edit(web, "namespace: demo", "namespace: demo, annotations: {lace-cni.io/traffic-distribution: Closest}"), webSlice, "", "Service demo/web metadata.annotations[lace-cni.io/traffic-distribution] UnknownDistribution"},
		{"unknown session affinity", edit(web, "spec:", "spec:\n  sessionAffinity: clientip"), webSlice, "", "Service demo/web spec.sessionAffinity UnknownAffinity"},
		{"affinity of 0 s", edit(web, "spec:", "spec:\n  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}"), webSlice, edit(webShown, "external=Cluster", "external=Cluster affinity=10800s"), "Service demo/web spec.sessionAffinityConfig.clientIP.timeoutSeconds BadTimeout"},
		{"affinity of more than a day", edit(web, "spec:", "spec:\n  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}"), webSlice, edit(webShown, "external=Cluster", "external=Cluster affinity=10800s"), "Service demo/web spec.sessionAffinityConfig.clientIP.timeoutSeconds BadTimeout"},
		{"unknown family policy", edit(web, "spec:", "spec:\n  ipFamilyPolicy: DualStack"), webSlice, "", "Service demo/web spec.ipFamilyPolicy UnknownPolicy"},
		{"dual stack demanded of one family", edit(web, "spec:", "spec:\n  ipFamilyPolicy: RequireDualStack"), webSlice, "", "Service demo/web spec.ipFamilyPolicy Contradiction"},
		{"single stack demanded of two families", edit(web, "spec:", "spec:\n  ipFamilyPolicy: SingleStack\n  ipFamilies: [IPv4, IPv6]\n  clusterIPs: [10.96.0.10, 'fd00:10:96::10']"), webSlice, edit(webShown, "10.96.0.10 80\n", "10.96.0.10 80\n  ClusterIP fd00:10:96::10 80\n") + "  v6 internal nothing\n", "Service demo/web spec.ipFamilyPolicy Contradiction"},
		{"unknown spec.trafficDistribution", edit(web, "spec:", "spec:\n  trafficDistribution: Nearest"), webSlice, "", "Service demo/web spec.trafficDistribution UnknownDistribution"},
		{"health check port above 65535", edit(web, "spec:", "spec:\n  healthCheckNodePort: 65536"), webSlice, "", "Service demo/web spec.healthCheckNodePort BadPort"},
		{"external policy without an external address", edit(web, "spec:", "spec:\n  externalTrafficPolicy: Local"), webSlice, edit(webShown, "external=Cluster", "external=Local"), "Service demo/web spec.externalTrafficPolicy NoEffect"},
		{"unknown external policy", edit(web, "spec:", "spec:\n  type: NodePort\n  externalTrafficPolicy: Global", "port: 80}", "port: 80, nodePort: 30080}"), webSlice, edit(webShown, "web ClusterIP", "web NodePort"), "Service demo/web spec.externalTrafficPolicy UnknownPolicy"},
		{"a node port of a ClusterIP Service", edit(web, "port: 80}", "port: 80, nodePort: 30080}"), webSlice, "", "Service demo/web spec.ports[0].nodePort NoEffect"},
		{"a node port of a Service whose type is unknown, which is said already", edit(web, "spec:", "spec:\n  type: nodeport", "port: 80}", "port: 80, nodePort: 30080}"), webSlice, "", "Service demo/web spec.type UnknownType"},
		{"a node port above 65535", edit(web, "port: 80}", "port: 80, nodePort: 65536}"), webSlice, "", "Service demo/web spec.ports[0].nodePort BadPort"},
		{"a node port twice", edit(edit(web, "spec:", "spec:\n  type: NodePort"), "[{name: http, port: 80}]", "[{name: http, port: 80, nodePort: 30079}, {name: b, port: 81, nodePort: 30080}, {name: c, port: 82, nodePort: 30080}]"), webSlice, edit(webShown, "web ClusterIP", "web NodePort") + "port \"b\" 81/TCP\n  ClusterIP 10.96.0.10 81\n  v4 internal nothing\nport \"c\" 82/TCP\n  ClusterIP 10.96.0.10 82\n  v4 internal nothing\n", "Service demo/web spec.ports[2].nodePort DuplicatePort"},
		{"a NodePort Service without a node port, which an API server would have allotted", edit(web, "spec:", "spec:\n  type: NodePort"), webSlice, edit(webShown, "web ClusterIP", "web NodePort"), "Service demo/web spec.ports[0].nodePort NoNodePort"},
		{"a balancer's without one, and without a word that none is wanted", edit(web, "spec:", "spec:\n  type: LoadBalancer\n  allocateLoadBalancerNodePorts: true"), webSlice, edit(webShown, "web ClusterIP", "web LoadBalancer"), "Service demo/web spec.ports[0].nodePort NoNodePort"},
		{"a node port above 65535 of a NodePort Service", edit(web, "spec:", "spec:\n  type: NodePort", "port: 80}", "port: 80, nodePort: 65536}"), webSlice, edit(webShown, "web ClusterIP", "web NodePort"), "Service demo/web spec.ports[0].nodePort BadPort"},
		{"an external address of a family that the Service does not have", edit(web, "spec:", "spec:\n  externalIPs: ['2001:db8::7']"), webSlice, "", "Service demo/web spec.externalIPs[0] WrongFamily"},
		{"a balancer's address of a family that the Service does not have", edit(web, "spec:", "status: {loadBalancer: {ingress: [{ip: '2001:db8::1'}]}}\nspec:\n  allocateLoadBalancerNodePorts: false\n  type: LoadBalancer"), webSlice, edit(webShown, "web ClusterIP", "web LoadBalancer"), "Service demo/web status.loadBalancer.ingress[0].ip WrongFamily"},
		{"a wrong source range closes its family", edit(web, "spec:", "spec:\n  allocateLoadBalancerNodePorts: false\n  type: LoadBalancer\n  loadBalancerSourceRanges: [192.0.2.0]"), webSlice, edit(edit(webShown, "web ClusterIP", "web LoadBalancer"), "external=Cluster", "external=Cluster from4=nobody"), "Service demo/web spec.loadBalancerSourceRanges[0] BadPrefix"},
		{"and in IPv6 form that of IPv6", edit(web, "spec:", "spec:\n  allocateLoadBalancerNodePorts: false\n  type: LoadBalancer\n  loadBalancerSourceRanges: ['2001:db8::']"), webSlice, edit(edit(webShown, "web ClusterIP", "web LoadBalancer"), "external=Cluster", "external=Cluster from6=nobody"), "Service demo/web spec.loadBalancerSourceRanges[0] BadPrefix"},
		{"a wrong external address", edit(web, "spec:", "spec:\n  externalIPs: [nonsense]"), webSlice, "", "Service demo/web spec.externalIPs[0] BadAddress"},
		{"a wrong address of the balancer", edit(web, "spec:", "status: {loadBalancer: {ingress: [{ip: nonsense}]}}\nspec:\n  allocateLoadBalancerNodePorts: false\n  type: LoadBalancer"), webSlice, edit(webShown, "web ClusterIP", "web LoadBalancer"), "Service demo/web status.loadBalancer.ingress[0].ip BadAddress"},
		{"an unknown mode of the balancer's address, which is served", edit(web, "spec:", "status: {loadBalancer: {ingress: [{ip: 203.0.113.1, ipMode: vip}]}}\nspec:\n  allocateLoadBalancerNodePorts: false\n  type: LoadBalancer"), webSlice, edit(webShown, "web ClusterIP", "web LoadBalancer", "10.96.0.10 80\n", "10.96.0.10 80\n  LoadBalancer 203.0.113.1 80\n") + edit("  v4 external all ENDS\n  v4 cluster all ENDS\n", "ENDS", "10.244.1.5:8080 10.244.2.5:8080"), "Service demo/web status.loadBalancer.ingress[0].ipMode UnknownMode"},

		{"endpoint of the wrong family", web, edit(webSlice, "10.244.2.5", "'fd00::5'"), first, "EndpointSlice demo/web-1 endpoints[1].addresses[0] WrongFamily"},
		{"endpoint is no address", web, edit(webSlice, "10.244.2.5", "web-2"), first, "EndpointSlice demo/web-1 endpoints[1].addresses[0] BadAddress"},
		{"endpoint is loopback", web, edit(webSlice, "10.244.2.5", "127.0.0.1"), first, "EndpointSlice demo/web-1 endpoints[1].addresses[0] BadAddress"},
		{"endpoint is link-local", web, edit(webSlice, "10.244.2.5", "169.254.1.1"), first, "EndpointSlice demo/web-1 endpoints[1].addresses[0] BadAddress"},
		{"endpoint has no address", web, edit(webSlice, "[10.244.2.5]", "[]"), first, "EndpointSlice demo/web-1 endpoints[1].addresses NoAddress"},
		{"slice of unknown address type", web, edit(webSlice, "IPv4", "ipv4"), edit(webShown, "all 10.244.1.5:8080 10.244.2.5:8080", "nothing"), "EndpointSlice demo/web-1 addressType UnknownFamily"},
		{"slice without address type", web, edit(webSlice, "addressType: IPv4\n", ""), edit(webShown, "all 10.244.1.5:8080 10.244.2.5:8080", "nothing"), "EndpointSlice demo/web-1 addressType UnknownFamily"},
		{"slice port 0", web, edit(webSlice, "[{name: http, port: 8080}]", "[{name: http, port: 8080}, {name: x, port: 0}]"), "", "EndpointSlice demo/web-1 ports[1].port BadPort"},
		{"slice port left out", web, edit(webSlice, "[{name: http, port: 8080}]", "[{name: http}]"), edit(webShown, "all 10.244.1.5:8080 10.244.2.5:8080", "nothing"), "EndpointSlice demo/web-1 ports[0].port BadPort"},
		{"slice port of unknown protocol", web, edit(webSlice, "[{name: http, port: 8080}]", "[{name: x, port: 1, protocol: tcp}, {name: http, port: 8080}]"), "", "EndpointSlice demo/web-1 ports[0].protocol UnknownProtocol"},
		{"slice port twice", web, edit(webSlice, "[{name: http, port: 8080}]", "[{name: http, port: 8080}, {name: http, port: 9090}]"), "", "EndpointSlice demo/web-1 ports[1].name DuplicateName"},
		{"slice whose port names are all others", web, edit(webSlice, "name: http", "name: htpp"), edit(webShown, "all 10.244.1.5:8080 10.244.2.5:8080", "nothing"), "EndpointSlice demo/web-1 ports NoSuchPort"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := tc.want
			if want == "" {
				want = webShown
			}
			s, problems := resolve.Service(decodeService(t, tc.svc), decodeSlices(t, []string{tc.slice}), node)
			if d := cmp.Diff(want+"! "+tc.problem+"\n", show(s, problems)); d != "" {
				t.Errorf("resolved (-want +got):\n%s%s", d, strings.Join(messages(problems), "\n"))
			}
			for _, p := range problems {
				if !strings.ContainsAny(p.Message, ";:,") || strings.HasSuffix(p.Message, ".") {
					t.Errorf("message %q: want what is wrong and what to do, without a full stop", p.Message)
				}
			}
		})
	}
}

// TestProblemsOfOneObjectAreBounded: a slice of a thousand wrong addresses is one
// mistake of one generator, and must not bury the other Problems.
func TestProblemsOfOneObjectAreBounded(t *testing.T) {
	slice := decodeSlices(t, []string{webSlice})[0]
	good := slice.Endpoints
	for i := range 1000 {
		e := good[0]
		e.Addresses = []string{fmt.Sprintf("fd00::%d", i)}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	s, problems := resolve.Service(decodeService(t, web), append(decodeSlices(t, nil), slice), node)
	if n := len(problems); n == 0 || n > 10 {
		t.Fatalf("%d Problems for one slice, want a handful", n)
	}
	if last := problems[len(problems)-1].Message; !strings.Contains(last, "992 more") {
		t.Errorf("last Problem %q does not say how many more there are", last)
	}
	if d := cmp.Diff(webShown, show(s, nil)); d != "" {
		t.Errorf("the good endpoints of the slice (-want +got):\n%s", d)
	}
}
