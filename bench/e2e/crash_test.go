package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
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
	names   map[*lab.Stream]string
	lost    map[*lab.Stream]int // segments of a TCP stream that were lost before anything was done to it
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
	l := &load{c: c, names: map[*lab.Stream]string{}, lost: map[*lab.Stream]int{}}
	for _, from := range []string{"shopper", "visitor", "n1", lab.OutsideName} {
		for _, w := range ways {
			r := w.to("web")
			r.Timeout = silence
			s := l.start(t, from, r)
			l.service = append(l.service, s)
			if w.network == "tcp" {
				l.lost[s] = 0
			}
		}
	}
	for from, to := range directWays {
		c.must(t, c.host(t, to).Listen(t.Context(), directPort))
		for _, family := range []int{4, 6} {
			r := traffic.Request{Network: "tcp", To: netip.AddrPortFrom(c.host(t, to).Addr(family), directPort), Bytes: 1000, Timeout: silence}
			l.direct = append(l.direct, l.start(t, from, r))
		}
	}
	goOn(t, l.service)
	for s := range l.lost {
		p, err := s.Progress(t.Context())
		c.must(t, err)
		l.lost[s] = p.Lost
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
	l.names[s] = fmt.Sprintf("%s to %s/%s", from, r.To, r.Network)
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

// unharmed wants that TCP through Services has not lost a segment since the load began.
// Whether a datagram was lost or only late on a busy machine, nobody can tell.
func (l *load) unharmed(t *testing.T) {
	t.Helper()
	for s, before := range l.lost {
		p, err := s.Progress(t.Context())
		l.c.must(t, err)
		if p.Lost > before {
			t.Errorf("%s: %d segments were lost", l.names[s], p.Lost-before)
		}
	}
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

// Killing either process, or both, breaks no flow; with the lane, no flow even notices.
// While the fast path is dead, new connections to Services get no answer rather than a
// wrong one, and work as soon as it is back; without the agent they work. Traffic that is
// not for a Service notices nothing at all.
func TestKill(t *testing.T) {
	for _, lane := range lanes {
		t.Run("lane "+lane, func(t *testing.T) { kill(t, lane) })
	}
}

func kill(t *testing.T, lane string) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: lane})
	n1 := c.Node("n1")
	t.Run("the fast path", func(t *testing.T) {
		l := startLoad(t, c)
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
		if lane == "on" {
			c.inLane(t, "n1", func() { goOn(t, l.service) })
		}
		goOn(t, l.direct)
		waits := c.knock(t, "shopper")
		c.must(t, n1.StartFastpath(t.Context()))
		for w, a := range waits() {
			if a.Outcome != traffic.OK {
				t.Errorf("a connection over %s that began without a fast path: %s, want it answered when there is one again", w, a)
			}
		}
		goOn(t, l.service)
		if lane == "on" {
			l.unharmed(t)
		} else {
			l.mustHaveLost(t)
		}
		service, direct := l.stop(t)
		t.Logf("fast path dead for a while: longest gap of Service flows %s, of others %s", service, direct)
		c.ready(t)
	})
	t.Run("the agent", func(t *testing.T) {
		l := startLoad(t, c)
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
		l.unharmed(t)
		l.stop(t)
		c.must(t, n1.StartAgent(t.Context()))
		c.ready(t)
	})
	t.Run("both, and the fast path comes back alone", func(t *testing.T) {
		l := startLoad(t, c)
		c.must(t, n1.KillAgent(t.Context()))
		c.must(t, n1.KillFastpath(t.Context()))
		goOn(t, l.direct)
		c.must(t, n1.StartFastpath(t.Context()))
		goOn(t, l.service)
		if a := c.dial(t, "shopper", way{"tcp", 4}.to("web")); a.Outcome != traffic.OK {
			t.Errorf("a new connection from the last snapshot, without an agent: %s", a)
		}
		if lane == "on" {
			l.unharmed(t)
		}
		l.stop(t)
		c.must(t, n1.StartAgent(t.Context()))
		c.ready(t)
	})
}

// knock begins a TCP connection of each family to web, and returns when both have sent
// their SYN in vain. The result waits for what becomes of them.
func (c *cluster) knock(t *testing.T, from string) (wait func() map[way]traffic.Answer) {
	t.Helper()
	before := c.drops(t, "n1")["no-worker"]
	var mu sync.Mutex
	var all sync.WaitGroup
	answers := map[way]traffic.Answer{}
	for _, family := range []int{4, 6} {
		all.Go(func() {
			w := way{"tcp", family}
			r := w.to("web")
			r.Timeout = settleTime
			a, err := c.host(t, from).Dial(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			answers[w] = a
			mu.Unlock()
		})
	}
	eventually(t, "drop of two SYNs", func() bool { return c.drops(t, "n1")["no-worker"] >= before+2 })
	return func() map[way]traffic.Answer { all.Wait(); return answers }
}

// Ten kills at random moments, under load, break nothing.
func TestRestartLoop(t *testing.T) {
	for _, lane := range lanes {
		t.Run("lane "+lane, func(t *testing.T) { restartLoop(t, lane) })
	}
}

func restartLoop(t *testing.T, lane string) {
	c := newCluster(t, lab.Topology{Lane: lane})
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
	if lane == "on" {
		l.unharmed(t)
	}
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
