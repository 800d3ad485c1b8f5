package resolve_test

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// TestEverySliceCounts: the endpoints of a Service are those of all its slices, of which each
// holds a hundred, whoever made them; one that comes, goes or changes is followed by itself.
func TestEverySliceCounts(t *testing.T) {
	const slices, each = 13, 100
	makers := []string{"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io", "someone.example.com", ""}
	o := resolve.NewObjects()
	svc := decodeService(t, web)
	name := model.Name{Namespace: "demo", Name: "web"}
	o.PutService(name, svc)
	slice := func(i, endpoints int) (model.Name, *discoveryv1.EndpointSlice) {
		es := decodeSlices(t, []string{webSlice})[0]
		es.Name, es.Endpoints = fmt.Sprint("web-", i), nil
		if maker := makers[i%len(makers)]; maker != "" {
			es.Labels[discoveryv1.LabelManagedBy] = maker
		}
		for j := range endpoints {
			es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.%d.%d", i, j+1)}})
		}
		return model.Name{Namespace: "demo", Name: es.Name}, es
	}
	holds := func(what string, want int) {
		t.Helper()
		s, problems := o.Resolve(name, node)
		if s == nil || len(problems) > 0 {
			t.Fatalf("%s: %v, %v", what, s, problems)
		}
		if got := len(s.Ports[0].Families[4].Internal.Endpoints); got != want {
			t.Errorf("%s: %d endpoints are used, want %d", what, got, want)
		}
	}
	for i := range slices {
		o.PutSlice(slice(i, each))
	}
	holds("all slices", slices*each)
	o.PutSlice(slice(5, 1))
	holds("one has shrunk", (slices-1)*each+1)
	gone, _ := slice(6, 0)
	o.PutSlice(gone, nil)
	holds("another is gone", (slices-2)*each+1)
	o.PutSlice(slice(6, each))
	holds("and back", (slices-1)*each+1)
}
