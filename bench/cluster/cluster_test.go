//go:build cluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// patience bounds every wait for a change; nothing is as slow on a quiet machine.
const patience = time.Minute

// world is a cluster under test.
type world struct {
	*Cluster
	t testing.TB
}

// newWorld starts a cluster with its Nodes, fast paths and agents.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := emptyWorld(t)
	for _, n := range w.Nodes() {
		w.must(n.StartFastpath(t.Context()))
		_, err := w.StartAgent(t.Context(), n, AgentUser)
		w.must(err)
	}
	return w
}

// emptyWorld starts a cluster with its Nodes, and nothing that carries Services.
func emptyWorld(t testing.TB) *world {
	t.Helper()
	Required(t)
	c, err := Start(t.Context(), lab.Topology{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{c, t}
	t.Cleanup(func() {
		if t.Failed() {
			w.show()
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	text, err := manifests.Files.ReadFile("nodes.yaml")
	w.must(err)
	w.must(c.CreateNodes(t.Context(), text))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// show writes the last lines of every log, for a test that has failed.
func (w *world) show() {
	logs := map[string]string{}
	for _, n := range w.Nodes() {
		logs["agent of "+n.Name], logs["fastpath of "+n.Name] = w.Log(n.Host, roleAgent), w.Log(n.Host, "fastpath")
		logs["kube-proxy of "+n.Name], logs["cleanup of "+n.Name] = w.Log(n.Host, roleKubeProxy), w.Log(n.Host, roleCleanup)
	}
	for _, role := range []string{roleEtcd, roleAPIServer, roleControllers} {
		logs[role] = w.Log(w.Outside(), role)
	}
	for what, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it never ran
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		w.t.Logf("%s, last lines:\n%s", what, strings.Join(lines[max(0, len(lines)-12):], "\n"))
	}
}

func (w *world) eventually(what string, done func() error) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("not within %s: %s: %v", patience, what, err)
		}
	}
}

// grant gives the agents the rights that the documentation says they need.
func (w *world) grant() {
	w.t.Helper()
	w.must(w.Grant(w.t.Context()))
}

// problems of a node, by kind, object and reason.
func (w *world) problems(n *lab.Node) (out []string) {
	admin := n.Admin()
	defer admin.Close()
	list, err := admin.Problems(w.t.Context())
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range list.Items {
		out = append(out, strings.Join(strings.Fields(p.Kind+" "+p.Object+" "+p.Field+" "+p.Reason), " "))
	}
	return out
}

// awaitPods waits until every node sends a Service exactly to these pods.
func (w *world) awaitPods(service string, pods ...string) {
	w.t.Helper()
	var endpoints []manifests.Endpoint
	for _, p := range pods {
		endpoints = append(endpoints, w.Pod(p).Endpoint(manifests.Ready))
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	w.must(w.AwaitService(ctx, service, endpoints))
}

// ready waits until all that is declared is in use everywhere.
func (w *world) ready() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	w.must(w.AwaitReady(ctx))
}

// dial calls a Service's port 80 from a host.
func (w *world) dial(from, addr string) traffic.Answer {
	w.t.Helper()
	h, err := w.Host(from)
	w.must(err)
	a, err := h.Dial(w.t.Context(), traffic.Request{Network: "tcp", To: netip.AddrPortFrom(netip.MustParseAddr(addr), 80), Bytes: 1000})
	w.must(err)
	return a
}

// serves waits until a Service answers from a host, as one of the pods.
func (w *world) serves(from, addr string, pods ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s from %s", addr, from), func() error {
		if a := w.dial(from, addr); a.Outcome != traffic.OK || !slices.Contains(pods, a.Server) {
			return errors.New(a.String())
		}
		return nil
	})
}

// label changes a label of an object; nil removes it.
func (w *world) label(path, key string, value any) {
	w.t.Helper()
	w.must(w.API.Patch(w.t.Context(), path, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}, nil))
}

// TestAgentsReadTheAPI: two nodes whose agents read a real API server, with no more rights
// than the documentation says; EndpointSlices come from the real controllers. What each
// part says holds on both nodes, without a restart.
func TestAgentsReadTheAPI(t *testing.T) {
	w := newWorld(t)
	n1 := w.Node("n1")
	web := map[string]string{"app": "web"}
	origins := []string{"shopper", "visitor", "n1", "n2"}
	var service *corev1.Service
	part := w.parts()

	part("without rights it says which are missing, and goes on when it has them", func() {
		w.eventually("Problems that name the resources", func() error {
			got := w.problems(n1)
			for _, what := range []string{"services", "nodes", "endpointslices.discovery.k8s.io", "servicecidrs.networking.k8s.io"} {
				if !slices.Contains(got, "Source kube "+what+" Forbidden") {
					return fmt.Errorf("none about %s in %q", what, got)
				}
			}
			return nil
		})
		w.grant()
		w.ready()
	})

	part("ClusterIPs of both families reach the pods from pods and nodes", func() {
		for _, p := range lab.WebPods {
			w.must(w.Pod(p).Listen(t.Context(), lab.WebTarget))
			w.must(w.CreatePod(t.Context(), w.Pod(p), web))
		}
		var err error
		service, err = w.CreateService(t.Context(), Service("web", web))
		w.must(err)
		w.awaitPods("web", lab.WebPods...)
		for _, from := range origins {
			for _, ip := range service.Spec.ClusterIPs {
				w.serves(from, ip, lab.WebPods...)
			}
		}
	})

	part("a pod that is not ready gets nothing, until it is again", func() {
		w.must(w.SetPodReady(t.Context(), w.Pod("web-1"), false))
		w.eventually("web-1 is out of use", func() error {
			for _, n := range w.Nodes() {
				admin := n.Admin()
				defer admin.Close()
				list, err := admin.Backends(t.Context())
				if err != nil {
					return err
				}
				for _, b := range list.Items {
					if b.Service == "web" && b.Ready && (b.Address == w.Pod("web-1").Addr4.String() || b.Address == w.Pod("web-1").Addr6.String()) {
						return fmt.Errorf("%s still has %s", n.Name, b.Address)
					}
				}
			}
			return nil
		})
		w.ready()
		for range 30 {
			if a := w.dial("shopper", service.Spec.ClusterIP); a.Outcome != traffic.OK || a.Server == "web-1" {
				t.Errorf("a call went to a pod that is not ready: %s", a)
			}
		}
		w.must(w.SetPodReady(t.Context(), w.Pod("web-1"), true))
		w.awaitPods("web", lab.WebPods...)
	})

	part("a label on the Service or on all its slices takes it away, and back", func() {
		byHand := w.twoSlices("sliced", "192.0.2.1")
		for what, c := range map[string]struct {
			service string
			paths   []string
			back    func()
		}{
			"the Service": {"web", []string{Services + "/web"}, func() { w.awaitPods("web", lab.WebPods...) }},
			"the slices":  {"sliced", byHand, func() { w.awaitBackends("sliced", "192.0.2.1") }},
		} {
			for _, key := range []string{"service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"} {
				for _, p := range c.paths {
					w.label(p, key, "other")
				}
				w.eventually(what+" labelled "+key, func() error { return w.absent(c.service) })
				for _, p := range c.paths {
					w.label(p, key, nil)
				}
				c.back()
			}
		}
		w.eventually("no Problem is left", func() error { // an informer that was refused asks again after a while
			for _, n := range w.Nodes() {
				if got := w.problems(n); len(got) > 0 {
					return fmt.Errorf("on %s: %q", n.Name, got)
				}
			}
			return nil
		})
	})

	part("a service range that is added is routed", func() {
		r := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}}
		r.Spec.CIDRs = []string{"10.98.0.0/24"}
		w.must(w.API.Create(t.Context(), Ranges, r, nil))
		s := Service("ranged", web)
		s.Spec.ClusterIP, s.Spec.IPFamilyPolicy = "10.98.0.10", nil
		w.eventually("the API server gives out the range", func() error {
			_, err := w.CreateService(t.Context(), s)
			return err
		})
		for _, from := range origins {
			w.serves(from, "10.98.0.10", lab.WebPods...)
		}
	})

	part("a Problem of a Service is one Event for both nodes", func() {
		wrong := map[string]any{"metadata": map[string]any{"annotations": map[string]string{"lace-cni.io/traffic-distribution": "Nearest"}}}
		w.must(w.API.Patch(t.Context(), Services+"/web", wrong, nil))
		var events []eventsv1.Event
		w.eventually("an Event", func() error {
			for _, n := range w.Nodes() {
				if !slices.ContainsFunc(w.problems(n), func(p string) bool { return strings.HasSuffix(p, "UnknownDistribution") }) {
					return fmt.Errorf("%s has no Problem", n.Name)
				}
			}
			var list eventsv1.EventList
			w.must(w.API.Get(t.Context(), Events, &list))
			events = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason != "UnknownDistribution" })
			if len(events) == 0 {
				return errors.New("none")
			}
			return nil
		})
		if e := events[0]; len(events) != 1 || e.Regarding.Name != "web" || e.Regarding.UID != service.UID {
			t.Errorf("Events %+v, want one about Service web", events)
		}
		w.must(w.API.Patch(t.Context(), Services+"/web", map[string]any{"metadata": map[string]any{"annotations": nil}}, nil))
	})

	part("while the API is away everything goes on, and an agent may start; after it the node catches up", func() {
		_, err := w.CreateService(t.Context(), Service("byhand", nil))
		w.must(err)
		w.must(w.SetEndpoints(t.Context(), "byhand", "192.0.2.1"))
		w.awaitBackends("byhand", "192.0.2.1")
		w.must(w.KillAPIServer(t.Context()))
		w.must(w.KillAgent(t.Context(), n1))
		_, err = w.StartAgent(t.Context(), n1, AgentUser)
		w.must(err)
		w.eventually("the Problem", func() error {
			for _, n := range w.Nodes() {
				if got := w.problems(n); !slices.Contains(got, "Source kube Unreachable") {
					return fmt.Errorf("%s: %q", n.Name, got)
				}
			}
			return nil
		})
		for _, from := range origins {
			for range 5 {
				if a := w.dial(from, service.Spec.ClusterIP); a.Outcome != traffic.OK {
					t.Errorf("from %s with the API away: %s", from, a)
				}
			}
		}
		w.must(w.StartAPIServer(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		w.must(w.AwaitAPIServer(ctx))
		back := time.Now()
		w.must(w.SetEndpoints(t.Context(), "byhand", "192.0.2.2"))
		w.eventually("the change is in use everywhere", func() error {
			for _, n := range w.Nodes() {
				if got := w.backends(n, "byhand"); got != "192.0.2.2" {
					return fmt.Errorf("%s has %s", n.Name, got)
				}
				if got := w.problems(n); len(got) > 0 {
					return fmt.Errorf("%s: %q", n.Name, got)
				}
			}
			return nil
		})
		w.ready()
		t.Logf("from the API server's readiness to a change after it in use on both nodes: %s", time.Since(back).Round(time.Millisecond))
	})

	part("the agents asked for nothing else, and write nothing at rest", func() {
		before := w.writes()
		quiet, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		<-quiet.Done()
		if after := w.writes(); after != before {
			t.Errorf("%d writes in 3 s in which nothing changed", after-before)
		}
	})
}

// backends of a Service on a node, each once.
func (w *world) backends(n *lab.Node, service string) string {
	admin := n.Admin()
	defer admin.Close()
	list, err := admin.Backends(w.t.Context())
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, b := range list.Items {
		if b.Service == service && !slices.Contains(out, b.Address) {
			out = append(out, b.Address)
		}
	}
	return strings.Join(out, " ")
}

// absent says why a Service is not gone from every node.
func (w *world) absent(service string) error {
	for _, n := range w.Nodes() {
		admin := n.Admin()
		defer admin.Close()
		list, err := admin.Services(w.t.Context())
		if err != nil {
			return err
		}
		for _, s := range list.Items {
			if s.Name == service {
				return fmt.Errorf("%s still has it", n.Name)
			}
		}
	}
	return nil
}

// writes counts what agents wrote, and checks that all they did was to read what they
// need and to tell Events.
func (w *world) writes() (n int) {
	w.t.Helper()
	asked, err := w.Audit()
	w.must(err)
	if len(asked) == 0 {
		w.t.Error("the audit has seen nothing")
	}
	for _, a := range asked {
		what := a.ObjectRef.Resource
		switch {
		case (a.Verb == "list" || a.Verb == "watch") && slices.Contains([]string{"services", "nodes", "endpointslices", "servicecidrs"}, what):
		case a.Verb == "create" && what == "events":
			n++
		default:
			w.t.Errorf("an agent asked to %s %+v", a.Verb, a.ObjectRef)
		}
	}
	return n
}
