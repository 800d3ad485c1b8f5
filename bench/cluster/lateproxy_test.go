//go:build cluster

package cluster

import (
	"fmt"
	"slices"
	"testing"

	"lace-cni.io/lace/bench/lab"
)

// TestKubeProxyBesideARunningLace: a real kube-proxy that is started on a node which Lace
// serves is told of while it is there, and its rules until they are removed; meanwhile what
// reaches Lace is served.
func TestKubeProxyBesideARunningLace(t *testing.T) {
	RequiredKubeProxy(t)
	w := newWorld(t)
	part := w.parts()
	n1 := w.Node("n1")
	web := map[string]string{"app": "web"}
	var ip string
	told := func(want bool) {
		w.eventually(fmt.Sprintf("kube-proxy is told of: %v", want), func() error {
			if got := w.problems(n1); slices.Contains(got, "Node n1 KubeProxyBeside") != want {
				return fmt.Errorf("Problems %q", got)
			}
			return nil
		})
	}
	served := func() {
		for _, from := range []string{"shopper", "visitor"} {
			w.serves(from, ip, lab.WebPods...)
		}
	}

	part("Lace serves alone", func() {
		w.grant()
		for _, p := range lab.WebPods {
			w.must(w.Pod(p).Listen(t.Context(), lab.WebTarget))
			w.must(w.CreatePod(t.Context(), w.Pod(p), web))
		}
		made, err := w.CreateService(t.Context(), Service("web", web))
		w.must(err)
		ip = made.Spec.ClusterIP
		w.awaitPods("web", lab.WebPods...)
		w.ready()
		served()
		told(false)
	})

	part("a kube-proxy is started: it is told of, and pods are served", func() {
		w.must(w.StartKubeProxy(t.Context(), n1, "nftables"))
		told(true)
		served()
	})

	part("it ends: its rules are told of, until they are removed", func() {
		w.must(w.StopKubeProxy(t.Context(), n1))
		told(true)
		w.must(w.CleanUpKubeProxy(t.Context(), n1))
		told(false)
		served()
	})
}
