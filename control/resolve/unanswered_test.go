package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// TestNodePortsThatNobodyAnswers: when the node has none of the addresses that are asked for,
// its node ports vanish, which is a Problem of the node for each family that Services have
// node ports of.
func TestNodePortsThatNobodyAnswers(t *testing.T) {
	host := model.Attachments{Ports: []model.Port{{Kind: model.PortHost, Addresses: addrs("172.30.0.11", "fd30::11")}}}
	four := model.Attachments{Ports: []model.Port{{Kind: model.PortHost, Addresses: addrs("172.30.0.11")}}}
	for _, tc := range []struct {
		name, flag, addresses string
		at                    model.Attachments
		kind                  corev1.ServiceType
		want                  []string
	}{
		{"the Node object names an address that the node does not have", "", "192.168.7.99", host, corev1.ServiceTypeNodePort, []string{"IPv4"}},
		{"of both families", "primary", "192.168.7.99 fd99::1", host, corev1.ServiceTypeLoadBalancer, []string{"IPv4", "IPv6"}},
		{"it names one that the node has", "", "192.168.7.99 172.30.0.11", host, corev1.ServiceTypeNodePort, nil},
		{"a prefix that fits none of its addresses", "198.51.100.0/24", "172.30.0.11", host, corev1.ServiceTypeNodePort, []string{"IPv4"}},
		{"every address", "all", "192.168.7.99", host, corev1.ServiceTypeNodePort, nil},
		{"a family that the node has no address of", "0.0.0.0/0,::/0", "172.30.0.11", four, corev1.ServiceTypeNodePort, nil},
		{"no Service has node ports", "", "192.168.7.99", host, corev1.ServiceTypeClusterIP, nil},
		{"the node's addresses are not known yet", "", "192.168.7.99", model.Attachments{}, corev1.ServiceTypeNodePort, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at, err := resolve.ParseNodePorts(tc.flag)
			if err != nil {
				t.Fatal(err)
			}
			svc := decodeService(t, web)
			svc.Spec.Type, svc.Spec.ClusterIPs = tc.kind, []string{"10.96.0.10", "fd00:10:96::10"}
			svc.Spec.Ports[0].NodePort = 30080
			o := resolve.NewObjects()
			o.PutService(demo("web"), svc)
			here := model.Node{Name: "n1", Addresses: addrs(strings.Fields(tc.addresses)...)}
			s, _ := o.Resolve(demo("web"), here)
			var got []string
			for _, p := range o.NodePortsUnanswered(at, here, &tc.at, []*model.Service{s}) {
				if p.Kind != "Node" || p.Object != "n1" || p.Reason != "NoNodePortAddress" || !strings.Contains(p.Message, "demo/web among them") {
					t.Errorf("Problem %+v", p)
				}
				got = append(got, p.Message[strings.Index(p.Message, "IPv"):][:4])
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("families (-want +got):\n%s", d)
			}
		})
	}
}
