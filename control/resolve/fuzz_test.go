package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// FuzzService feeds whatever YAML can decode into: the first document as the Service,
// the second as the Node, the others as its slices. Nothing may panic, nothing that is
// resolved may be unusable, and no argument may change.
func FuzzService(f *testing.F) {
	nodeText := "metadata: {name: n1, labels: {topology.kubernetes.io/zone: za}}\nstatus: {addresses: [{type: InternalIP, address: 172.30.0.11}]}\nspec: {podCIDRs: [10.244.1.0/24]}\n"
	f.Add(web + "\n---\n" + nodeText + "\n---\n" + webSlice)
	f.Add(edit(web, "spec:", "spec:\n  type: LoadBalancer\n  externalIPs: [1.2.3.4, x]\n  ipFamilies: [IPv4, IPv6]") + "\n---\n\n---\n" + webSlice + "\n---\n" + edit(webSlice, "IPv4", "IPv6"))
	f.Add("spec: {clusterIPs: [10.96.0.1, 'fd00::1'], ports: [{port: -1}, {port: 70000}, {port: 1, nodePort: -5}]}\n---\nspec: {podCIDR: x}\n---\nendpoints: [{}]\nports: [{}]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		docs := strings.Split(text, "\n---\n")
		var svc corev1.Service
		var n corev1.Node
		_ = yaml.Unmarshal([]byte(docs[0]), &svc)
		if len(docs) > 1 {
			_ = yaml.Unmarshal([]byte(docs[1]), &n)
		}
		var all []*discoveryv1.EndpointSlice
		for _, d := range docs[min(2, len(docs)):] {
			var es discoveryv1.EndpointSlice
			_ = yaml.Unmarshal([]byte(d), &es)
			all = append(all, &es)
		}
		before := svc.DeepCopy()
		here, problems := resolve.Node(&n)
		checkProblems(t, problems)
		s, problems := resolve.Service(&svc, all, here)
		checkProblems(t, problems)
		checkService(t, s)
		if d := cmp.Diff(before, &svc); d != "" {
			t.Errorf("Service changed its argument:\n%s", d)
		}
		slices.Reverse(all)
		again, _ := resolve.Service(&svc, all, here)
		if d := cmp.Diff(show(s, nil), show(again, nil)); d != "" {
			t.Errorf("the order of slices matters:\n%s", d)
		}
	})
}

func checkProblems(t *testing.T, problems []model.Problem) {
	t.Helper()
	for _, p := range problems {
		if p.Kind == "" || p.Reason == "" || p.Message == "" || p.Field == "" {
			t.Errorf("incomplete Problem %+v", p)
		}
	}
}

func checkService(t *testing.T, s *model.Service) {
	t.Helper()
	if s == nil {
		return
	}
	for _, p := range s.Ports {
		if p.Port == 0 || p.Protocol.String() == "unknown" || len(p.Frontends) == 0 {
			t.Errorf("port %+v cannot be served", p)
		}
		for _, f := range p.Frontends {
			if !f.Addr.IsValid() || f.Port == 0 {
				t.Errorf("frontend %+v cannot be served", f)
			}
		}
		for fam, c := range p.Families {
			for _, e := range c.Endpoints {
				if e.Port == 0 || e.Addr.Is4() != (fam == 4) {
					t.Errorf("endpoint %+v of family %d cannot be reached", e, fam)
				}
			}
		}
	}
}
