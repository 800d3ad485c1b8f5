package resolve_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
)

var cmpNet = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func demo(name string) model.Name { return model.Name{Namespace: "demo", Name: name} }

func addrs(ss ...string) (out []netip.Addr) {
	for _, s := range ss {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func prefixes(ss ...string) (out []netip.Prefix) {
	for _, s := range ss {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// thousand is Service s<i> with its slice, all right.
func thousand(t testing.TB, i int) (*corev1.Service, *discoveryv1.EndpointSlice) {
	t.Helper()
	svc, slice := decodeService(t, web), decodeSlices(t, []string{webSlice})[0]
	svc.Name, svc.Spec.ClusterIP = fmt.Sprintf("s%d", i), fmt.Sprintf("10.96.%d.%d", i/250, 1+i%250)
	slice.Name, slice.Labels = svc.Name+"-1", map[string]string{discoveryv1.LabelServiceName: svc.Name}
	return svc, slice
}
