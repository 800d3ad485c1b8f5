package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

var node = model.Node{Name: "n1", Zone: "za"}

// A Service and a slice that are right; cases replace parts of them.
const (
	web = `
metadata: {name: web, namespace: demo}
spec:
  clusterIP: 10.96.0.10
  ports: [{name: http, port: 80}]
`
	webSlice = `
metadata: {name: web-1, namespace: demo, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.244.1.5], nodeName: n1}
- {addresses: [10.244.2.5], nodeName: n2}
`
	webShown = `demo/web ClusterIP internal=Cluster external=Cluster
port "http" 80/TCP
  ClusterIP 10.96.0.10 80
  v4 internal all 10.244.1.5:8080 10.244.2.5:8080
`
)

func edit(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }

func TestService(t *testing.T) {
	for _, tc := range []struct {
		name   string
		svc    string
		slices []string
		want   string
	}{
		{"what the API server would fill in may be left out", web, []string{webSlice}, webShown},
		{"no slice: no endpoint", web, nil, `
			demo/web ClusterIP internal=Cluster external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal nothing
			`},
		{"a headless Service is left to DNS", edit(web, "10.96.0.10", "None"), []string{webSlice}, "not proxied"},
		{"headless by the list of addresses", edit(web, "clusterIP: 10.96.0.10", "clusterIPs: [None]"), nil, "not proxied"},
		{"ExternalName is left to DNS even with an address", edit(web, "spec:", "spec:\n  type: ExternalName\n  externalName: example.org"), nil, "not proxied"},
		{"the label headless withdraws a Service, whatever its value",
			edit(web, "namespace: demo", `namespace: demo, labels: {service.kubernetes.io/headless: "false"}`), []string{webSlice}, "not proxied"},
		{"the label of another proxy withdraws a Service",
			edit(web, "namespace: demo", `namespace: demo, labels: {service.kubernetes.io/service-proxy-name: ""}`), []string{webSlice}, "not proxied"},
		{"a label on one slice hides that slice", web,
			[]string{edit(webSlice, "labels: {", "labels: {service.kubernetes.io/headless: '', "),
				edit(webSlice, "web-1", "web-2", "10.244.1.5", "10.244.1.6", "10.244.2.5", "10.244.2.6")},
			edit(webShown, "1.5:", "1.6:", "2.5:", "2.6:")},
		{"and with it what is wrong with it", web,
			[]string{webSlice, edit(webSlice, "web-1", "web-2", "labels: {", "labels: {service.kubernetes.io/headless: '', ", "name: http", "name: htpp")}, webShown},
		{"a slice of host names, or without ports, is no mistake", web,
			[]string{webSlice, edit(webSlice, "web-1", "web-2", "IPv4", "FQDN", "name: http", "name: htpp"), edit(webSlice, "web-1", "web-3", "[{name: http, port: 8080}]", "[]")}, webShown},
		{"a Service all of whose slices are labelled is withdrawn", web,
			[]string{edit(webSlice, "labels: {", "labels: {service.kubernetes.io/service-proxy-name: x, ")}, "not proxied"},

		{"clients are remembered for a second at least", edit(web, "spec:", "spec:\n  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}"),
			[]string{webSlice}, edit(webShown, "external=Cluster", "external=Cluster affinity=1s")},
		{"and for a day at most", edit(web, "spec:", "spec:\n  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: 86400}}"),
			[]string{webSlice}, edit(webShown, "external=Cluster", "external=Cluster affinity=86400s")},
		{"hints for zones", web,
			[]string{edit(webSlice, "nodeName: n1", "nodeName: n1, hints: {forZones: [{name: zb}]}", "nodeName: n2", "nodeName: n2, hints: {forZones: [{name: zb}, {name: za}]}")},
			edit(webShown, "all 10.244.1.5:8080 10.244.2.5:8080", "hinted-zone 10.244.2.5:8080 -10.244.1.5:8080(hinted-to-other-zones)")},
		{"hints for nodes", web,
			[]string{edit(webSlice, "nodeName: n1", "nodeName: n1, hints: {forNodes: [{name: n2}]}", "nodeName: n2", "nodeName: n2, hints: {forNodes: [{name: n2}, {name: n1}]}")},
			edit(webShown, "all 10.244.1.5:8080 10.244.2.5:8080", "hinted-node 10.244.2.5:8080 -10.244.1.5:8080(hinted-to-other-nodes)")},
		{"ports are matched by name and protocol, and the slice has the number", `
metadata: {name: dns, namespace: demo}
spec:
  clusterIP: 10.96.0.53
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}, {name: sctp, port: 9, protocol: SCTP}]
`, []string{`
metadata: {name: dns-1, namespace: demo}
addressType: IPv4
ports: [{name: dns, port: 5353, protocol: UDP}, {name: dns-tcp, port: 5354, protocol: TCP}, {name: sctp, port: 9}]
endpoints: [{addresses: [10.244.1.5]}]
`}, `
			demo/dns ClusterIP internal=Cluster external=Cluster
			port "dns" 53/UDP
			  ClusterIP 10.96.0.53 53
			  v4 internal all 10.244.1.5:5353
			port "dns-tcp" 53/TCP
			  ClusterIP 10.96.0.53 53
			  v4 internal all 10.244.1.5:5354
			port "sctp" 9/SCTP
			  ClusterIP 10.96.0.53 9
			  v4 internal nothing
			`},
		{"one named target port with two numbers: endpoints differ in port", web,
			[]string{webSlice, edit(webSlice, "web-1", "web-2", "8080", "9090", "10.244.1.5", "10.244.1.6", "10.244.2.5", "10.244.2.6")}, `
			demo/web ClusterIP internal=Cluster external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal all 10.244.1.5:8080 10.244.1.6:9090 10.244.2.5:8080 10.244.2.6:9090
			`},
		{"the same endpoint in two slices counts once; the copy that does not terminate wins", web,
			[]string{edit(webSlice, "nodeName: n1", "nodeName: n1, conditions: {ready: false, serving: true, terminating: true}"), edit(webSlice, "web-1", "web-2")}, `
			demo/web ClusterIP internal=Cluster external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal all 10.244.1.5:8080 10.244.2.5:8080 -10.244.1.5:8080(duplicate) -10.244.2.5:8080(duplicate)
			`},
		{"only the first address of an endpoint counts", web,
			[]string{edit(webSlice, "[10.244.1.5]", "[10.244.1.5, 10.244.1.99, nonsense]")}, webShown},
		{"slices of host names are no concern of a proxy", web,
			[]string{webSlice, "metadata: {name: f, namespace: demo}\naddressType: FQDN\nendpoints: [{addresses: [example.org]}]\nports: [{name: x, port: 1}]"}, webShown},
		{"conditions that are left out mean ready, serving, not terminating", web,
			[]string{edit(webSlice, "nodeName: n1", "conditions: {serving: false}", "nodeName: n2", "conditions: {ready: false}")}, `
			demo/web ClusterIP internal=Cluster external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal all 10.244.1.5:8080 -10.244.2.5:8080(not-ready)
			`},

		{"two families are two programs", `
metadata: {name: web, namespace: demo}
spec:
  clusterIPs: ["fd00:10:96::10", 10.96.0.10]
  ipFamilies: [IPv6, IPv4]
  ports: [{port: 80}]
`, []string{edit(webSlice, "name: http, ", ""), `
metadata: {name: web-6, namespace: demo}
addressType: IPv6
ports: [{port: 8080}]
endpoints: [{addresses: ["fd00:10:244:1::5"]}]
`}, `
			demo/web ClusterIP internal=Cluster external=Cluster
			port "" 80/TCP
			  ClusterIP fd00:10:96::10 80
			  ClusterIP 10.96.0.10 80
			  v4 internal all 10.244.1.5:8080 10.244.2.5:8080
			  v6 internal all fd00:10:244:1::5:8080
			`},
		{"a slice of a family that the Service lacks is not used", web, []string{webSlice, `
metadata: {name: web-6, namespace: demo}
addressType: IPv6
ports: [{name: http, port: 8080}]
endpoints: [{addresses: ["fd00:10:244:1::5"]}]
`}, webShown},

		{"internal policy Local governs the ClusterIP", edit(web, "spec:", "spec:\n  internalTrafficPolicy: Local"), []string{webSlice}, `
			demo/web ClusterIP internal=Local external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal local 10.244.1.5:8080 -10.244.2.5:8080(not-local)
			`},
		{"PreferClosest by annotation", edit(web, "namespace: demo", "namespace: demo, annotations: {lace-cni.io/traffic-distribution: PreferClosest}"), []string{webSlice}, `
			demo/web ClusterIP internal=Cluster external=Cluster PreferClosest
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal same-node 10.244.1.5:8080 -10.244.2.5:8080(other-node)
			`},
		{"every address of a LoadBalancer is known; names and mode Proxy do not count", `
metadata: {name: web, namespace: demo}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  externalTrafficPolicy: Local
  externalIPs: [198.51.100.7, 198.51.100.9, "2001:db8::7"]
  ports: [{name: http, port: 80, nodePort: 30080}]
status:
  loadBalancer:
    ingress: [{ip: 203.0.113.1}, {ip: 198.51.100.7}, {ip: 203.0.113.2, ipMode: Proxy}, {ip: 203.0.113.3, ipMode: VIP}, {hostname: lb.example.org}]
`, []string{webSlice}, `
			demo/web LoadBalancer internal=Cluster external=Local
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  NodePort 172.30.0.11 30080
			  LoadBalancer 203.0.113.1 80
			  LoadBalancer 198.51.100.7 80
			  LoadBalancer 203.0.113.3 80
			  ExternalIP 198.51.100.9 80
			  v4 internal all 10.244.1.5:8080 10.244.2.5:8080
			  v4 external local 10.244.1.5:8080 -10.244.2.5:8080(not-local)
			  v4 cluster all 10.244.1.5:8080 10.244.2.5:8080
			! Service demo/web spec.externalIPs[2] WrongFamily
			`},
		{"a LoadBalancer without node ports has its other addresses", `
metadata: {name: web, namespace: demo}
spec:
  type: LoadBalancer
  allocateLoadBalancerNodePorts: false
  clusterIP: 10.96.0.10
  ports: [{name: http, port: 80}]
status:
  loadBalancer:
    ingress: [{ip: 203.0.113.1}]
`, []string{webSlice}, `
			demo/web LoadBalancer internal=Cluster external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  LoadBalancer 203.0.113.1 80
			  v4 internal all 10.244.1.5:8080 10.244.2.5:8080
			  v4 external all 10.244.1.5:8080 10.244.2.5:8080
			  v4 cluster all 10.244.1.5:8080 10.244.2.5:8080
			`},
		{"several ports and protocols have a node port each, of one number too", `
metadata: {name: web, namespace: demo}
spec:
  type: NodePort
  clusterIP: 10.96.0.10
  ports: [{name: http, port: 80, nodePort: 30080}, {name: h3, port: 80, protocol: UDP, nodePort: 30080}, {name: s, port: 81, protocol: SCTP, nodePort: 30081}]
`, nil, `
			demo/web NodePort internal=Cluster external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  NodePort 172.30.0.11 30080
			  v4 internal nothing
			  v4 external nothing
			  v4 cluster nothing
			port "h3" 80/UDP
			  ClusterIP 10.96.0.10 80
			  NodePort 172.30.0.11 30080
			  v4 internal nothing
			  v4 external nothing
			  v4 cluster nothing
			port "s" 81/SCTP
			  ClusterIP 10.96.0.10 81
			  NodePort 172.30.0.11 30081
			  v4 internal nothing
			  v4 external nothing
			  v4 cluster nothing
			`},
		{"both families have their own node ports, balancers and external addresses", `
metadata: {name: web, namespace: demo}
spec:
  type: LoadBalancer
  clusterIPs: [10.96.0.10, "fd00:10:96::10"]
  externalIPs: ["2001:db8::7"]
  loadBalancerSourceRanges: [" 192.0.2.0/24 ", 198.51.100.7/24]
  sessionAffinity: ClientIP
  ports: [{name: http, port: 80, nodePort: 30080}]
status:
  loadBalancer:
    ingress: [{ip: 203.0.113.1}, {ip: "2001:db8::1"}]
`, nil, `
			demo/web LoadBalancer internal=Cluster external=Cluster affinity=10800s from4=192.0.2.0/24,198.51.100.0/24
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  ClusterIP fd00:10:96::10 80
			  NodePort 172.30.0.11 30080
			  NodePort fd30::11 30080
			  LoadBalancer 203.0.113.1 80
			  LoadBalancer 2001:db8::1 80
			  ExternalIP 2001:db8::7 80
			  v4 internal nothing
			  v4 external nothing
			  v4 cluster nothing
			  v6 internal nothing
			  v6 external nothing
			  v6 cluster nothing
			`},
		{"a range of everything opens its family, and leaves the other as it is", edit(web, "spec:", "spec:\n  type: LoadBalancer\n  allocateLoadBalancerNodePorts: false\n  loadBalancerSourceRanges: [192.0.2.0/24, 0.0.0.0/0, '2001:db8::/32']"), nil, `
			demo/web LoadBalancer internal=Cluster external=Cluster from6=2001:db8::/32
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal nothing
			`},
		{"ranges of another type than LoadBalancer do not count", edit(web, "spec:", "spec:\n  type: NodePort\n  loadBalancerSourceRanges: [192.0.2.0/24]", "port: 80}", "port: 80, nodePort: 30080}"), nil, `
			demo/web NodePort internal=Cluster external=Cluster
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  NodePort 172.30.0.11 30080
			  v4 internal nothing
			  v4 external nothing
			  v4 cluster nothing
			`},
		{"the time for which a client is remembered can be set", edit(web, "spec:", "spec:\n  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}"), nil, `
			demo/web ClusterIP internal=Cluster external=Cluster affinity=1s
			port "http" 80/TCP
			  ClusterIP 10.96.0.10 80
			  v4 internal nothing
			`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node
			n.NodePorts = addrs("172.30.0.11", "fd30::11")
			s, problems := resolve.Service(decodeService(t, tc.svc), decodeSlices(t, tc.slices), n)
			if d := cmp.Diff(lines(tc.want), show(s, problems)); d != "" {
				t.Errorf("resolved (-want +got):\n%s%s", d, strings.Join(messages(problems), "\n"))
			}
		})
	}
}
