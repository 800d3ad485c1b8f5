package e2e

import (
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// localRestarts are the states of the node's two endpoints while they are replaced: at times
// all that the node has is one in its period of grace, while another node has a ready one.
var localRestarts = [][2]manifests.State{
	{manifests.Ready, manifests.NotReady},
	{manifests.Draining, manifests.NotReady}, // only what drains is left here
	{manifests.Draining, manifests.Ready},
	{manifests.Gone, manifests.Ready},
	{manifests.NotReady, manifests.Ready},
	{manifests.NotReady, manifests.Draining},
	{manifests.Ready, manifests.Draining},
	{manifests.Ready, manifests.Gone},
	{manifests.Ready, manifests.NotReady},
}

// rollingRestartLocal replaces the endpoints that a node has of a Service with external policy
// Local, while clients outside call that node some hundred times a second.
func rollingRestartLocal(t *testing.T, c *cluster) {
	state := func(s [2]manifests.State) []manifests.Endpoint {
		return append(append(c.endpoints(t, s[0], "web-1"), c.endpoints(t, s[1], "web-2")...), c.endpoints(t, manifests.Ready, "web-3")...)
	}
	c.set(t, "rolling-local", state(localRestarts[0]))
	var running []*lab.Attempts
	began := time.Now()
	for i, d := range []door{"n1", "n1", balancer, balancer} {
		connect := ways[i%2] // over TCP of both families
		a, err := c.host(t, lab.OutsideName).StartAttempts(t.Context(), traffic.Burst{
			Request: c.through(connect, "rolling-local", d), Every: 10 * time.Millisecond, Parallel: 32,
		})
		c.must(t, err)
		running = append(running, a)
	}
	for range 3 {
		for _, s := range localRestarts {
			c.set(t, "rolling-local", state(s))
		}
	}
	made := 0
	for _, a := range running {
		answers, err := a.Stop(t.Context())
		c.must(t, err)
		made += len(answers)
		for _, answer := range answers {
			if answer.Outcome != traffic.OK {
				t.Errorf("a connection failed: %s", answer)
			} else if answer.Server == "web-3" {
				t.Errorf("answered by an endpoint of another node: %s", answer)
			}
		}
	}
	t.Logf("%d connections in %s", made, time.Since(began).Round(time.Millisecond))
	if made < 8*len(localRestarts) {
		t.Errorf("%d connections were made, too few to tell", made)
	}
}
