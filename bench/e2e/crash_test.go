package e2e

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
)

// load is long-lived traffic of every kind.
type load struct {
	c       *cluster
	service []*lab.Stream // through web
	direct  []*lab.Stream // to no Service: pod to pod, node to pod, outside to node
}

// directPort is where direct traffic goes, and nothing else.
const directPort = 9090

// directWays are who calls whom without a Service.
var directWays = map[string]string{"shopper": "web-3", "visitor": "web-1", "n1": "web-2", lab.OutsideName: "n1"}

// silence bounds the time in which a flow may wait for an echo before it counts as broken:
// longer than any outage here, TCP's growing pauses included.
const silence = 30 * time.Second

func startLoad(t *testing.T, c *cluster) *load {
	t.Helper()
	l := &load{c: c}
	for _, from := range []string{"shopper", "visitor", "n1", lab.OutsideName} {
		for _, w := range ways {
			r := w.to("web")
			r.Timeout = silence
			l.service = append(l.service, l.start(t, from, r))
		}
	}
	for from, to := range directWays {
		c.must(t, c.host(t, to).Listen(t.Context(), directPort))
		for _, family := range []int{4, 6} {
			r := traffic.Request{Network: "tcp", To: netip.AddrPortFrom(c.host(t, to).Addr(family), directPort), Bytes: 1000, Timeout: silence}
			l.direct = append(l.direct, l.start(t, from, r))
		}
	}
	return l
}

func (l *load) start(t *testing.T, from string, r traffic.Request) *lab.Stream {
	t.Helper()
	count := 2
	s, err := l.c.host(t, from).StartStream(t.Context(), traffic.Stream{Request: r, Count: count, Every: 2 * time.Millisecond})
	if err != nil {
		t.Fatalf("%s to %s/%s: %v", from, r.To, r.Network, err)
	}
	return s
}

// goOn waits until every stream moves.
func goOn(t *testing.T, streams []*lab.Stream) {
	t.Helper()
	for _, s := range streams {
		before, err := s.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		within(t, silence, "progress of a stream", func() bool {
			p, err := s.Progress(t.Context())
			return err != nil || p.Broken > 0 || p.Turns > before.Turns+10*p.Flows
		})
	}
}

// stop ends all traffic and returns the longest gap of either kind. No flow may have
// broken, and direct traffic may not have lost a single segment, in either direction: its
// gaps say only how busy the machine was.
func (l *load) stop(t *testing.T) (service, direct time.Duration) {
	t.Helper()
	lost := 0
	for _, to := range directWays {
		n, err := l.c.host(t, to).Lost(t.Context(), directPort)
		l.c.must(t, err)
		lost += n
	}
	var there int
	service, _ = l.end(t, "Service", l.service)
	direct, there = l.end(t, "direct", l.direct)
	if lost+there > 0 {
		t.Errorf("traffic that is not for a Service lost %d segments on the way there and %d on the way back", there, lost)
	}
	for _, to := range directWays {
		l.c.must(t, l.c.host(t, to).Unlisten(t.Context(), directPort))
	}
	return service, direct
}

// stopUnharmed ends all traffic and wants that nothing at all was lost.
func (l *load) stopUnharmed(t *testing.T) {
	t.Helper()
	for _, s := range l.service {
		p, err := s.Progress(t.Context())
		l.c.must(t, err)
		if p.Lost > 0 {
			t.Errorf("traffic for a Service lost %d segments or datagrams", p.Lost)
		}
	}
	l.stop(t)
}

// mustHaveLost wants that Service traffic has lost segments in both directions: it was
// there when the fast path was not, and losses are seen.
func (l *load) mustHaveLost(t *testing.T) {
	t.Helper()
	there, back := 0, 0
	for _, s := range l.service {
		p, err := s.Progress(t.Context())
		l.c.must(t, err)
		there += p.Lost
	}
	for _, name := range lab.WebPods {
		n, err := l.c.Pod(name).Lost(t.Context(), lab.WebTarget)
		l.c.must(t, err)
		back += n
	}
	if there == 0 || back == 0 {
		t.Errorf("without a fast path, Service traffic lost %d segments there and %d back: nothing was tested", there, back)
	}
}

// end ends streams of one kind.
func (l *load) end(t *testing.T, kind string, streams []*lab.Stream) (gap time.Duration, lost int) {
	t.Helper()
	for _, s := range streams {
		p, err := s.Stop(t.Context())
		l.c.must(t, err)
		if p.Broken > 0 {
			t.Errorf("%d of %d %s flows broke: %s", p.Broken, p.Flows, kind, p.First)
		}
		gap = max(gap, p.Gap)
		lost += p.Lost
	}
	return gap, lost
}

func (c *cluster) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleTime)
	defer cancel()
	c.must(t, c.AwaitReady(ctx))
}

// Killing either process, or both, breaks no flow. While the fast path is dead, new
// connections to Services get no answer rather than a wrong one; without the agent they
// work. Traffic that is not for a Service notices nothing at all.
func TestKill(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2})
	n1 := c.Node("n1")
	t.Run("the fast path", func(t *testing.T) {
		l := startLoad(t, c)
		goOn(t, l.service)
		c.must(t, n1.KillFastpath(t.Context()))
		for _, from := range []string{"shopper", "n1", lab.OutsideName} {
			for _, w := range ways {
				r := w.to("web")
				r.Timeout = 150 * time.Millisecond
				if a := c.dial(t, from, r); a.Outcome != traffic.Timeout {
					t.Errorf("%s over %s without a fast path: %s, want no answer", from, w, a)
				}
			}
		}
		goOn(t, l.direct)
		c.must(t, n1.StartFastpath(t.Context()))
		goOn(t, l.service)
		l.mustHaveLost(t)
		service, direct := l.stop(t)
		t.Logf("fast path dead for a while: longest gap of Service flows %s, of others %s", service, direct)
		c.ready(t)
	})
	t.Run("the agent", func(t *testing.T) {
		l := startLoad(t, c)
		goOn(t, l.service)
		c.must(t, n1.KillAgent(t.Context()))
		for _, from := range []string{"shopper", "n1", lab.OutsideName} {
			for _, w := range ways {
				if a := c.dial(t, from, w.to("web")); a.Outcome != traffic.OK {
					t.Errorf("%s over %s without an agent: %s", from, w, a)
				}
			}
		}
		goOn(t, l.service)
		goOn(t, l.direct)
		l.stopUnharmed(t)
		c.must(t, n1.StartAgent(t.Context()))
		c.ready(t)
	})
	t.Run("both, and the fast path comes back alone", func(t *testing.T) {
		l := startLoad(t, c)
		goOn(t, l.service)
		c.must(t, n1.KillAgent(t.Context()))
		c.must(t, n1.KillFastpath(t.Context()))
		goOn(t, l.direct)
		c.must(t, n1.StartFastpath(t.Context()))
		goOn(t, l.service)
		if a := c.dial(t, "shopper", way{"tcp", 4}.to("web")); a.Outcome != traffic.OK {
			t.Errorf("a new connection from the last snapshot, without an agent: %s", a)
		}
		l.stop(t)
		c.must(t, n1.StartAgent(t.Context()))
		c.ready(t)
	})
}

// Ten kills at random moments, under load, break nothing.
func TestRestartLoop(t *testing.T) {
	c := newCluster(t, lab.Topology{})
	n1 := c.Node("n1")
	l := startLoad(t, c)
	for i := range 10 {
		goOn(t, l.service[:4])
		time.Sleep(rand.N(20 * time.Millisecond)) // the moment is the point
		c.must(t, n1.KillFastpath(t.Context()))
		c.must(t, n1.StartFastpath(t.Context()))
		if i%3 == 2 {
			c.must(t, n1.KillAgent(t.Context()))
			c.must(t, n1.StartAgent(t.Context()))
		}
	}
	goOn(t, l.service)
	service, direct := l.stop(t)
	c.ready(t)
	t.Logf("ten restarts: longest gap of Service flows %s, of others %s", service, direct)
}

// A snapshot that is damaged while the fast path runs is refused, and the last good one
// stays. One that is damaged when it starts leaves the node without Services but with
// everything else, until the agent writes a good one.
func TestDamagedSnapshot(t *testing.T) {
	c := newCluster(t, lab.Topology{})
	n1, web := c.Node("n1"), way{"tcp", 4}.to("web")
	c.must(t, n1.KillAgent(t.Context()))
	c.damage(t, "n1")
	eventually(t, "a refusal in the log", func() bool { return c.logs(t, "n1", "fastpath", "snapshot refused") })
	if a := c.dial(t, "shopper", web); a.Outcome != traffic.OK {
		t.Errorf("damaged while it runs: %s, want the last good snapshot to serve", a)
	}
	c.must(t, n1.KillFastpath(t.Context()))
	c.must(t, n1.StartFastpath(t.Context()))
	eventually(t, "a start without snapshot", func() bool { return c.logs(t, "n1", "fastpath", "there is none in use") })
	web.Timeout = 200 * time.Millisecond
	if a := c.dial(t, "shopper", web); a.Outcome != traffic.Timeout {
		t.Errorf("damaged when it starts: %s, want no answer", a)
	}
	direct := traffic.Request{Network: "tcp", To: netip.AddrPortFrom(c.Pod("web-3").Addr4, lab.WebTarget)}
	if a := c.dial(t, "shopper", direct); a.Outcome != traffic.OK {
		t.Errorf("traffic that is not for a Service: %s", a)
	}
	c.must(t, n1.StartAgent(t.Context()))
	c.ready(t)
	web.Timeout = 0
	if a := c.dial(t, "shopper", web); a.Outcome != traffic.OK {
		t.Errorf("after the agent has come back: %s", a)
	}
}

// damage replaces a node's snapshot by one with a byte changed.
func (c *cluster) damage(t *testing.T, node string) {
	t.Helper()
	path := c.stateFile(node, "snapshot")
	b, err := os.ReadFile(path)
	c.must(t, err)
	b[len(b)/2] ^= 0xff
	c.must(t, os.WriteFile(path+".new", b, 0o600))
	c.must(t, os.Rename(path+".new", path))
}

func (c *cluster) logs(t *testing.T, node, role, text string) bool {
	t.Helper()
	b, err := os.ReadFile(c.Node(node).Log(role))
	c.must(t, err)
	return bytes.Contains(b, []byte(text))
}
