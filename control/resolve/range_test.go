package resolve

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"

	"lace-cni.io/lace/control/model"
)

func TestRanges(t *testing.T) {
	for _, tc := range []struct {
		name     string
		cidrs    map[string][]string
		ranges   string
		problems string
	}{
		{"none", nil, "[]", ""},
		{"both families of one object", map[string][]string{"kubernetes": {"10.96.0.0/16", "fd00:10:96::/112"}}, "[10.96.0.0/16 fd00:10:96::/112]", ""},
		{"several objects, each range once", map[string][]string{"a": {"10.97.0.0/16"}, "b": {"10.96.0.0/16"}, "c": {"10.97.0.0/16"}}, "[10.96.0.0/16 10.97.0.0/16]", ""},
		{"a range in another", map[string][]string{"a": {"10.96.1.0/24"}, "b": {"10.96.0.0/16"}, "c": {"10.96.0.0/24"}}, "[10.96.0.0/16]", ""},
		{"bits behind the length", map[string][]string{"a": {"10.96.1.1/16"}}, "[10.96.0.0/16]", ""},
		{"addresses that no Service has", map[string][]string{"a": {"127.0.0.0/16", "10.96.0.0/16"}}, "[10.96.0.0/16]", "spec.cidrs[0] BadRange, "},
		{"no range, and everything", map[string][]string{"a": {"x", "0.0.0.0/0", "10.96.0.0/16"}}, "[10.96.0.0/16]", "spec.cidrs[0] BadPrefix, spec.cidrs[1] BadPrefix, "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := NewObjects()
			for n, cidrs := range tc.cidrs {
				c := &networkingv1.ServiceCIDR{}
				c.Spec.CIDRs = cidrs
				o.PutServiceCIDR(n, c)
			}
			ranges, problems := o.Ranges()
			said := ""
			for _, p := range problems {
				said += p.Field + " " + p.Reason + ", "
			}
			if d := cmp.Diff([]string{tc.ranges, tc.problems}, []string{fmt.Sprint(ranges), said}); d != "" {
				t.Errorf("ranges and Problems (-want +got):\n%s", d)
			}
			for n := range tc.cidrs {
				o.PutServiceCIDR(n, nil)
			}
			if ranges, _ := o.Ranges(); len(ranges) > 0 {
				t.Errorf("%v are left of ranges that are gone", ranges)
			}
		})
	}
}

func TestAClusterIPOutsideOfAllRangesIsAProblem(t *testing.T) {
	front := func(kind model.FrontendKind, a string) model.Frontend {
		return model.Frontend{Kind: kind, Addr: netip.MustParseAddr(a), Port: 80, Protocol: model.TCP}
	}
	s := &model.Service{Name: model.Name{Namespace: "demo", Name: "web"}, Ports: []model.ServicePort{
		{Frontends: []model.Frontend{front(model.ClusterIP, "10.96.0.1"), front(model.ClusterIP, "fd00::1"), front(model.ExternalIP, "198.51.100.1")}},
		{Frontends: []model.Frontend{front(model.ClusterIP, "10.96.0.1"), front(model.ClusterIP, "fd00::1")}},
	}}
	ranges := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:1::/112")}
	got := Outside(s, ranges)
	if len(got) != 1 || got[0].Problem.Object != "demo/web" || got[0].Problem.Reason != "OutsideServiceRanges" {
		t.Errorf("Problems %v, want one about fd00::1 alone", got)
	}
	if got := Outside(s, nil); len(got) > 0 {
		t.Errorf("without ranges: %v", got)
	}
}
