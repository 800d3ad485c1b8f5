package e2e

import (
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
)

// A process that stands still costs as much as one that is dead, and no more: without the
// agent nothing changes for packets, without the fast path established flows go on and new
// connections wait, until it moves on.
func TestStandStill(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: "on"})
	n1 := c.Node("n1")
	t.Run("the agent", func(t *testing.T) {
		l := startLoad(t, c)
		c.must(t, n1.FreezeAgent(t.Context()))
		for range 5 {
			for _, from := range []string{"shopper", "n1", lab.OutsideName} {
				for _, w := range ways {
					if a := c.dial(t, from, w.to("web")); a.Outcome != traffic.OK {
						t.Errorf("%s over %s while the agent stands still: %s", from, w, a)
					}
				}
			}
		}
		goOn(t, l.service)
		goOn(t, l.direct)
		l.unharmed(t)
		l.stop(t)
		c.must(t, n1.ThawAgent(t.Context()))
		c.ready(t)
	})
	t.Run("the fast path", func(t *testing.T) {
		l := startLoad(t, c)
		c.quiet(t, "n1")
		c.must(t, n1.FreezeFastpath(t.Context()))
		frozen := time.Now()
		c.inLane(t, "n1", func() { goOn(t, l.service); goOn(t, l.direct) })
		r := way{"udp", 4}.to("web")
		r.Timeout = 100 * time.Millisecond
		if a := c.dial(t, "shopper", r); a.Outcome != traffic.Timeout {
			t.Errorf("a new flow while the fast path stands still: %s", a)
		}
		slow := make(chan traffic.Answer, 1)
		go func() {
			r := way{"tcp", 4}.to("web")
			r.Timeout = silence
			a, err := c.host(t, "shopper").Dial(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			slow <- a
		}()
		eventually(t, "Problem", func() bool { return c.has(t, "FastpathDown") })
		goOn(t, l.service)
		t.Logf("stood still for %s", time.Since(frozen).Round(10*time.Millisecond))
		c.must(t, n1.ThawFastpath(t.Context()))
		if a := <-slow; a.Outcome != traffic.OK {
			t.Errorf("a connection that began while the fast path stood still: %s", a)
		}
		eventually(t, "end of the Problem", func() bool { return !c.has(t, "FastpathDown") })
		l.unharmed(t)
		l.stop(t)
		c.ready(t)
	})
}

// has reports whether n1 has a Problem with a reason.
func (c *cluster) has(t *testing.T, reason string) bool {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	list, err := admin.Problems(t.Context())
	c.must(t, err)
	for _, p := range list.Items {
		if p.Reason == reason {
			return true
		}
	}
	return false
}
