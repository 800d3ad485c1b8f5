package publish_test

import (
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

// TestNodePortsThatVanish: a Node object that names an address which the node does not have
// is a Problem as long as a Service has node ports, which then nobody answers.
func TestNodePortsThatVanish(t *testing.T) {
	p := runUnready(t, publish.Config{Path: filepath.Join(t.TempDir(), "snapshot")})
	at := model.Attachments{Ports: []model.Port{{ID: 1, Kind: model.PortHost, Device: "lace0", Ifindex: 2, MTU: 1500, Addresses: []netip.Addr{netip.MustParseAddr("192.168.7.11")}}}}
	n := &corev1.Node{}
	n.Name, n.Status.Addresses = "n1", []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.7.99"}}
	both := pair(1, 1)
	svc := both[0].Object.(*corev1.Service)
	svc.Spec.Type, svc.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080
	p.Apply(append(both, source.Change{Kind: source.Node, Name: model.Name{Name: "n1"}, Object: n}), nil)
	p.Synced()
	p.SetAttachments(at, nil)
	told := func(s *publish.State) bool {
		return slices.ContainsFunc(s.Problems, func(p model.Problem) bool { return p.Object == "n1" && p.Reason == "NoNodePortAddress" })
	}
	if s := await(t, p, "the Problem", told); !slices.Equal(s.Unanswered, []int{4}) || s.Services[0].Ports[0].NodePort != 30080 {
		t.Errorf("families whose node ports nobody answers %v, node port %d; want [4] and 30080", s.Unanswered, s.Services[0].Ports[0].NodePort)
	}
	right := n.DeepCopy()
	right.Status.Addresses[0].Address = "192.168.7.11"
	p.Apply([]source.Change{{Kind: source.Node, Name: model.Name{Name: "n1"}, Object: right}}, nil)
	s := await(t, p, "no Problem", func(s *publish.State) bool { return !told(s) })
	if len(s.Unanswered) > 0 {
		t.Errorf("node ports of %v are said to be answered by nobody", s.Unanswered)
	}
	if f := s.Services[0].Ports[0].Frontends; !slices.ContainsFunc(f, func(f model.Frontend) bool { return f.Kind == model.NodePort }) {
		t.Errorf("frontends %v, want the node port among them", f)
	}
}
