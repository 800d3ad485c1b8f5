package resolve_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// TestAliases: the node reaches its own addresses by their aliases: at node ports, and at a
// balancer's address that the node holds; not at an external one, which anybody may write.
func TestAliases(t *testing.T) {
	own := addrs("172.30.0.11", "203.0.113.7", "203.0.113.8", "fd30::11")
	node := model.Node{Name: "n1", NodePorts: addrs("172.30.0.11", "fd30::11")}
	node.Aliases = resolve.Own(&model.Attachments{Ports: []model.Port{
		{Kind: model.PortHost, Addresses: own}, {Kind: model.PortPod, Addresses: addrs("10.244.1.5")},
	}})
	svc := &corev1.Service{}
	svc.Namespace, svc.Name = "demo", "web"
	svc.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"},
		ExternalIPs: []string{"203.0.113.8"},
		Ports:       []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}},
	}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.7"}, {IP: "203.0.113.9"}}
	s, problems := resolve.Service(svc, nil, node)
	if s == nil || len(problems) > 0 {
		t.Fatalf("problems %v", problems)
	}
	want := map[netip.AddrPort]model.FrontendKind{
		netip.MustParseAddrPort("172.30.0.11:30080"): model.NodePort,
		netip.MustParseAddrPort("203.0.113.7:80"):    model.LoadBalancer,
	}
	for _, f := range s.Ports[0].Frontends {
		if !f.AliasOf.IsValid() {
			if model.IsAlias(f.Addr) {
				t.Errorf("%s is an alias of nothing", f.Addr)
			}
			continue
		}
		of := netip.AddrPortFrom(f.AliasOf, f.Port)
		if kind, wanted := want[of]; !wanted || kind != f.Kind || f.Addr != node.Aliases[f.AliasOf] {
			t.Errorf("%s is an alias of %s, %s", f.Addr, of, f.Kind)
		}
		delete(want, of)
	}
	if len(want) > 0 {
		t.Errorf("no alias of %v", want)
	}
}

// TestAliasIsNobodys: an address among the aliases is no Service's.
func TestAliasIsNobodys(t *testing.T) {
	for _, p := range []netip.Prefix{model.Alias4, model.Alias6} {
		if _, special := resolve.Special(p); !special {
			t.Errorf("%s may be a service range", p)
		}
	}
	svc := &corev1.Service{}
	svc.Namespace, svc.Name = "demo", "web"
	svc.Spec = corev1.ServiceSpec{
		ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1", "fd00:10:96::1"},
		ExternalIPs: []string{"169.254.76.9", "fd4c:6163:65:76::9"},
		Ports:       []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}},
	}
	s, problems := resolve.Service(svc, nil, model.Node{Name: "n1"})
	if len(problems) != 2 || len(s.Ports[0].Frontends) != 2 {
		t.Errorf("problems %v, frontends %v; want both external addresses refused", problems, s.Ports[0].Frontends)
	}
}
