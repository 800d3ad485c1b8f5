//go:build cluster

package cluster

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// twoSlices makes a Service whose endpoint is in two slices, and returns their paths. They
// are nobody's but the test's: the controllers take labels that they do not know from theirs,
// within a second.
func (w *world) twoSlices(service, address string) (paths []string) {
	w.t.Helper()
	_, err := w.CreateService(w.t.Context(), Service(service, nil))
	w.must(err)
	w.must(w.SetEndpoints(w.t.Context(), service, address))
	var s discoveryv1.EndpointSlice
	w.must(w.API.Get(w.t.Context(), Slices+"/"+service, &s))
	s.ObjectMeta = metav1.ObjectMeta{Name: service + "-more", Labels: s.Labels}
	w.must(w.API.Create(w.t.Context(), Slices, &s, nil))
	w.awaitBackends(service, address)
	return []string{Slices + "/" + service, Slices + "/" + s.Name}
}

// awaitBackends waits until every node sends a Service exactly to an address.
func (w *world) awaitBackends(service, address string) {
	w.t.Helper()
	w.eventually(service+" at "+address, func() error {
		for _, n := range w.Nodes() {
			if got := w.backends(n, service); got != address {
				return fmt.Errorf("%s has %q", n.Name, got)
			}
		}
		return nil
	})
}
