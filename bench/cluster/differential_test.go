//go:build cluster

package cluster

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/oracle"
	"lace-cni.io/lace/control/model"
)

var (
	rounds    = flag.Int("rounds", 0, "rounds of clusters in which Lace is compared with kube-proxy; 0: those of the sample")
	firstSeed = flag.Uint64("seed", 1, "seed of the first of the rounds")
)

// sample are the seeds of rounds that every run compares; a round in which something differed
// that was mended since is to be added. Together they meet every difference that is listed.
var sample = []uint64{4, 5}

// TestLikeKubeProxy puts random clusters of the oracle's into a real API server, and has the
// same node carried by a real kube-proxy, mode nftables, and by Lace, each in a lab of its own
// with the same addresses. First packets from everywhere are sent in both, and what becomes of
// them is what the oracle says: for Lace exactly, for kube-proxy but for the differences that
// are listed with their reasons. The endpoints are compared as sets, each of which has to be
// met, and so is whom they see as the client. What both answer at health ports is compared,
// too.
func TestLikeKubeProxy(t *testing.T) {
	RequiredKubeProxy(t)
	kernel := newStage(emptyWorld(t))
	kernel.rules = true
	kernel.grant()
	twin, err := kernel.Twin(t.Context(), lab.Topology{})
	kernel.must(err)
	t.Cleanup(func() {
		if err := twin.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &comparison{kernel: kernel, lace: newStage(&world{twin, t}), differed: map[string]int{}, became: map[string]int{}}
	c.start()
	seeds := sample
	if *rounds > 0 {
		seeds = nil
	}
	for i := range *rounds {
		seeds = append(seeds, *firstSeed+uint64(i))
	}
	for n, seed := range seeds {
		t.Run(fmt.Sprintf("round %d", seed), func(t *testing.T) { c.round(t, seed, n) })
	}
	t.Run("health ports", c.health)
	t.Logf("what became of packets: %v; where kube-proxy is meant to differ: %v", c.became, c.differed)
	if *rounds == 0 {
		c.complete(t)
	}
}

// complete says what the sample has not met: then it tells less than it says.
func (c *comparison) complete(t *testing.T) {
	for _, class := range []oracle.Class{oracle.Pass, oracle.Forward, oracle.Refuse, oracle.Drop} {
		if c.became[class.String()] == 0 {
			t.Errorf("not one packet had the outcome %s: choose another sample", class)
		}
	}
	for _, v := range views {
		if c.differed[v.name] == 0 {
			t.Errorf("the sample does not meet %q: choose another, or strike it off", v.name)
		}
	}
	for _, d := range differences {
		if c.differed[d.name] == 0 {
			t.Errorf("the sample does not meet %q: choose another, or strike it off", d.name)
		}
	}
}

// comparison is node n1 of one cluster, carried by kube-proxy and by Lace. The methods of its
// stages that wait or fail do so for the subtest that runs.
type comparison struct {
	kernel, lace *stage
	mu           sync.Mutex
	differed     map[string]int // how often each difference was met
	became       map[string]int // packets by class
	running      bool           // an agent
	healthPort   string         // of a Service that is being asked about, with its colon
}

// start starts both. kube-proxy takes the pods of the node for those inside, as Lace does.
func (c *comparison) start() {
	w := c.kernel
	w.must(w.startKubeProxy(w.t.Context(), w.Node("n1"), w.server, "--proxy-mode", "nftables", "--detect-local-mode", "NodeCIDR", "--iptables-min-sync-period", "50ms"))
	w.must(c.lace.Node("n1").StartFastpath(w.t.Context()))
}

// ways are how Lace runs in one round or another, by its seed: verdicts are the same.
var ways = []AgentOptions{
	{Delivery: model.Stack},
	{Delivery: model.Direct, LaneOff: true},
	{Delivery: model.Stack, LaneOff: true},
	{Delivery: model.Direct},
}

// change has an agent run in another way.
func (c *comparison) change(way AgentOptions) {
	w, n := c.lace, c.lace.Node("n1")
	if c.running {
		w.must(w.KillAgent(w.t.Context(), n))
	}
	c.running = true
	_, err := w.StartAgentWith(w.t.Context(), n, AgentUser, way)
	w.must(err)
	w.must(n.AwaitReady(w.t.Context()))
}

// round compares one round.
func (c *comparison) round(t *testing.T, seed uint64, n int) {
	c.kernel.t, c.lace.t = t, t
	way := ways[seed%uint64(len(ways))]
	c.change(way)
	begin := time.Now()
	r := c.kernel.newRound(seed, n)
	c.kernel.mark(r, c.kernel, c.lace)
	marked := time.Now()
	seen := seenByKubeProxy(r.all)
	var reminded []func() error
	var group errgroup.Group
	group.SetLimit(16)
	for i, p := range r.packets {
		q := ask(p, r.all, r.all.Pods)
		run := func() error { c.compare(t, seed, i, q, seen); return nil }
		if q.judged.Class == oracle.Forward && q.judged.Port.Reminded {
			reminded = append(reminded, run) // one after the other, or nobody knows who came first
			continue
		}
		group.Go(run)
	}
	_ = group.Wait()
	for _, run := range reminded {
		_ = run()
	}
	t.Logf("delivery %s, lane off: %v; %d Services, %d slices, %d packets: ready after %s, asked in %s", way.Delivery, way.LaneOff, len(r.all.Services), len(r.all.Slices), len(r.packets), marked.Sub(begin).Round(time.Millisecond), time.Since(marked).Round(time.Millisecond))
	c.kernel.remove(r)
}

// compare asks both.
func (c *comparison) compare(t *testing.T, seed uint64, i int, q *question, seen *oracle.Cluster) {
	lace := q.placed()
	other := ask(q.Packet, seen, q.pods)
	kernel, met := other.placed(), q.viewed()
	for _, d := range differences {
		if d.on(other, kernel) {
			met = append(met, d.name)
		}
	}
	c.mu.Lock()
	c.became[lace.class.String()]++
	for _, m := range met {
		c.differed[m]++
	}
	c.mu.Unlock()
	var both sync.WaitGroup
	for _, s := range []struct {
		name string
		*stage
		want *expected
	}{{"Lace", c.lace, lace}, {"kube-proxy", c.kernel, kernel}} {
		both.Go(func() {
			err := s.listen(q.To)
			for _, e := range s.want.endpoints {
				if err == nil {
					err = s.listen(e)
				}
			}
			if err == nil {
				err = s.wrong(t.Context(), q.Packet, s.want)
			}
			if err != nil {
				t.Errorf("packet %d: %s\n%s: %v\nexpected: %s %v, for kube-proxy by %q\noracle: %s %v\nrepeat with -run TestLikeKubeProxy -seed %d -rounds 1\n%s",
					i, text(q.Packet), s.name, err, s.want.class, s.want.endpoints, met, q.judged.Class, q.judged.Endpoints, seed, described(q))
			}
		})
	}
	both.Wait()
}

func text(p oracle.Packet) string {
	return fmt.Sprintf("%s %s from %s to %s", p.Protocol, [...]string{"of a pod", "of the node", "from outside"}[p.From], p.Source, p.To)
}

// described is the Service that the packet is for.
func described(q *question) string {
	if q.judged.Port == nil {
		return ""
	}
	return oracle.Describe(q.cluster, q.judged.Port.Service)
}
