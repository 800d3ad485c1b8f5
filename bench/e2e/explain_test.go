package e2e

import (
	"fmt"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// TestExplainTellsWhatClientsGet: for clients of every place, at every kind of address of
// Services of every kind, the node that decides is asked first; then the client gets what was
// told: an answer, from one of the endpoints that were named, or none.
func TestExplainTellsWhatClientsGet(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Lane: "on", Delivery: "stack"})
	c.declare(t, "frontends", frontends)
	for name, s := range exposed {
		c.set(t, name, c.endpoints(t, manifests.Ready, s.backends...))
	}
	for _, service := range []string{"anywhere", "here", "guarded", "nobody"} {
		c.routed(t, service)
		for _, from := range callers {
			for _, d := range []door{clusterIP, balancer, external, "n1", "n2"} {
				if unrouted(from, d) {
					continue
				}
				for _, w := range ways {
					if err := c.agrees(t, from, service, d, w); err != nil {
						t.Errorf("%s to %s of %s over %s: %v", from, d, service, w, err)
					}
				}
			}
		}
	}
}

// routed waits until both nodes send what they have for a Service's addresses to Lace: routes
// come behind the tables.
func (c *cluster) routed(t *testing.T, service string) {
	t.Helper()
	for _, node := range []string{"n1", "n2"} {
		for _, d := range []door{clusterIP, balancer} {
			for _, w := range ways {
				eventually(t, fmt.Sprintf("route of %s to %s of %s over %s", node, d, service, w), func() bool {
					e, err := c.explain(t, node, node, c.through(w, service, d))
					return err == nil && e.Verdict != "pass"
				})
			}
		}
	}
}

// outcomes of a call that go with a verdict.
var outcomes = map[string]traffic.Outcome{"forward": traffic.OK, "answer": traffic.Refused, "drop": traffic.Timeout}

// agrees asks, calls, and compares.
func (c *cluster) agrees(t *testing.T, from, service string, d door, w way) error {
	t.Helper()
	r := c.through(w, service, d)
	e, err := c.explain(t, from, c.resolvedAt(t, from, d), r)
	if err != nil {
		return err
	}
	want := outcomes[e.Verdict]
	if want == traffic.Timeout {
		r.Timeout = 200 * time.Millisecond
	}
	a := c.dial(t, from, r)
	switch {
	case a.Outcome != want:
		return fmt.Errorf("%s, told was %s, %s", a, e.Verdict, e.Reason)
	case e.Eligible == nil || e.Service != "default/"+service:
		return fmt.Errorf("told was of no choice for %q", e.Service)
	case want != traffic.OK:
		return nil
	}
	addr := c.host(t, a.Server).Addr(w.family).String()
	for _, named := range e.Eligible.Endpoints {
		if named.Address == addr {
			return nil
		}
	}
	return fmt.Errorf("%s at %s answers, which was not named: %+v", a.Server, addr, e.Eligible.Endpoints)
}

// explain asks a node about a client's packet.
func (c *cluster) explain(t *testing.T, from, node string, r traffic.Request) (api.Explanation, error) {
	t.Helper()
	admin := c.Node(node).Admin()
	defer admin.Close()
	origin := "host"
	if from != node {
		family := 4
		if r.To.Addr().Is6() {
			family = 6
		}
		origin = c.host(t, from).Addr(family).String()
	}
	return admin.Explain(t.Context(), origin, r.To.String()+"/"+r.Network)
}
