//go:build cluster

package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/control/model"
)

// TestReplaceKubeProxy carries out docs/how-to/replace-kube-proxy.md on both nodes, there and
// back: new connections are answered all the time, and those of before fare as it says.
func TestReplaceKubeProxy(t *testing.T) {
	RequiredKubeProxy(t)
	m := &migration{world: emptyWorld(t)}
	m.grant()
	part := m.parts()

	part("kube-proxy carries the Service", func() {
		for _, n := range m.Nodes() {
			m.must(m.StartKubeProxy(m.t.Context(), n, "nftables"))
		}
		web := map[string]string{"app": "web"}
		for _, p := range lab.WebPods {
			m.must(m.Pod(p).Listen(m.t.Context(), lab.WebTarget))
			m.must(m.CreatePod(m.t.Context(), m.Pod(p), web))
		}
		s := Service("web", web)
		s.Spec.Type = corev1.ServiceTypeNodePort
		var err error
		m.service, err = m.CreateService(m.t.Context(), s)
		m.must(err)
		for _, n := range m.Nodes() {
			m.eventually("rules on "+n.Name, func() error { return m.laid(n) })
		}
		for _, from := range []string{"shopper", "visitor", "n1", "n2"} {
			m.serves(from, m.service.Spec.ClusterIP, lab.WebPods...)
		}
		m.open()
		m.goOn(nil)
	})

	part("beside it an agent refuses to start", func() { m.refused(m.Node("n1"), "and runs") })

	part("when it has ended its rules go on, and an agent still refuses to start", func() {
		m.call()
		for _, n := range m.Nodes() {
			m.must(m.StopKubeProxy(m.t.Context(), n))
		}
		m.goOn(nil)
		m.refused(m.Node("n1"), "no longer, but its rules are")
	})

	part("Lace starts beside the rules: TCP connections of pods and outside clients are reset and counted, UDP goes on", func() {
		m.hands(func() {
			for _, n := range m.Nodes() {
				m.must(n.StartFastpath(m.t.Context()))
				_, err := m.StartAgentWith(m.t.Context(), n, AgentUser, AgentOptions{Delivery: model.Stack, BesideProxy: true})
				m.must(err)
			}
			m.ready()
		})
		m.reset(metFirst)
		m.eventually("one packet of each connection is counted", func() error {
			if got, want := m.noFlow(), uint64(len(metFirst)*flowsPerOrigin); got < want {
				return fmt.Errorf("%d counted as no-flow, want %d or more", got, want)
			}
			return nil
		})
		m.carriedOn(metFirst)
		m.goOn([]string{"n1"})
	})

	part("kube-proxy --cleanup: the node's own TCP connections are reset", func() {
		m.hands(func() {
			for _, n := range m.Nodes() {
				m.must(m.CleanUpKubeProxy(m.t.Context(), n))
			}
		})
		m.reset(nil)
		m.carriedOn(nil)
		m.answered()
		m.open()
		m.goOn(nil)
	})

	part("without rules an agent starts as ever", func() {
		for _, n := range m.Nodes() {
			m.must(m.KillAgent(m.t.Context(), n))
			_, err := m.StartAgentWith(m.t.Context(), n, AgentUser, AgentOptions{Delivery: model.Stack})
			m.must(err)
		}
		m.ready()
		m.goOn(nil)
	})

	part("back: kube-proxy lays its rules beside Lace, which goes on", func() {
		m.call()
		m.hands(func() {
			for _, n := range m.Nodes() {
				m.must(m.StartKubeProxy(m.t.Context(), n, "nftables"))
				m.eventually("rules on "+n.Name, func() error { return m.laid(n) })
			}
		})
		m.answeredAhead(m.Node("n1"))
		m.goOn(metFirst)
	})

	part("Lace goes without a trace, and kube-proxy's rules carry the Service", func() {
		m.hands(func() {
			for _, n := range m.Nodes() {
				m.must(m.KillAgent(m.t.Context(), n))
				m.must(n.StopFastpath(m.t.Context()))
				m.must(m.CleanUpLace(m.t.Context(), n))
				m.eventually("no trace on "+n.Name, func() error { return m.trace(n) })
			}
		})
	})

	part("the kernel forgets what it tracked between the node and Services: UDP goes on, TCP connections are reset or go on, none hangs", func() {
		m.hands(func() {
			for _, n := range m.Nodes() {
				m.forget(n)
			}
		})
		m.carriedOn(nil)
		m.resetOrOn()
		m.answered()
		m.open()
		m.goOn(nil)
	})
}
