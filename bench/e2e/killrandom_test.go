package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/xdp"
)

// patience is for a machine that does much else for hours: nothing waits for it to pass.
const patience = time.Minute

// waits says at which kills a connection that begins without a fast path is waited for: for the
// second that its SYN takes to come again.
const waits = 3

// kills is how often the fast path is killed: LACE_LONG_TESTS=1 asks for a thousand times.
func kills() int {
	if os.Getenv("LACE_LONG_TESTS") == "1" {
		return 1000
	}
	return 15
}

// The fast path is killed at random moments under load, some of them during its start, and
// now and then the agent too. No established flow breaks or loses a segment, traffic that
// is not for a Service loses nothing, new connections wait and then work, nobody is
// refused anything, and the flow table is sound each time.
func TestKillAtRandomMoments(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: "on", FlowSlots: 1 << 15})
	k := newKiller(t, c)
	l := startLoad(t, c)
	churn := k.churn()
	for i := range kills() {
		k.cycle(i)
		if t.Failed() {
			break
		}
		if i%100 == 99 {
			t.Logf("%d kills", i+1)
		}
	}
	goOn(t, l.service)
	l.unharmed(t)
	service, direct := l.stop(t)
	k.calm(churn)
	k.noRefusals()
	c.ready(t)
	k.figures()
	t.Logf("longest gap of Service flows %s, of others %s", service, direct)
}

// killer kills n1's fast path and looks at what it leaves.
type killer struct {
	*cluster
	t         *testing.T
	node      *lab.Node
	watchdogs map[string]*lab.Watchdog
	halfway   int // kills during a start
	waited    int // connections that began without a fast path, and were answered

	torn, half     int             // entries that kills left so
	started, serve []time.Duration // from the start of the process
}

func newKiller(t *testing.T, c *cluster) *killer {
	t.Helper()
	k := &killer{cluster: c, t: t, node: c.Node("n1"), watchdogs: map[string]*lab.Watchdog{}}
	for _, name := range []string{"shopper", "visitor", lab.OutsideName} {
		w, err := c.host(t, name).Watch(t.Context(), "eth0")
		c.must(t, err)
		k.watchdogs[name] = w
	}
	// What is going to be missed later is seen now.
	for name := range k.watchdogs {
		if a := c.dial(t, name, way{"tcp", 4}.to("empty")); a.Outcome != traffic.Refused {
			t.Errorf("a Service without endpoints: %s", a)
		}
		seen, err := k.watchdogs[name].Stop(t.Context())
		c.must(t, err)
		if len(seen) != 1 {
			t.Errorf("%s saw %d refusals when it was refused once", name, len(seen))
		}
		k.watchdogs[name], err = c.host(t, name).Watch(t.Context(), "eth0")
		c.must(t, err)
	}
	return k
}

// noRefusals wants that no client was told no, by whomever.
func (k *killer) noRefusals() {
	k.t.Helper()
	for name, w := range k.watchdogs {
		seen, err := w.Stop(k.t.Context())
		k.must(k.t, err)
		for i, r := range seen {
			if i == 5 {
				break
			}
			k.t.Errorf("%s was refused something at %s (%d in all): % x", name, r.At.Format(time.StampMicro), len(seen), r.Frame[:min(len(r.Frame), 80)])
		}
	}
}

// churn opens new connections all the time, so that kills meet them at every stage.
func (k *killer) churn() (all []*lab.Attempts) {
	k.t.Helper()
	for _, from := range []string{"shopper", "n1", lab.OutsideName} {
		for _, family := range []int{4, 6} {
			r := way{"tcp", family}.to("web")
			a, err := k.host(k.t, from).StartAttempts(k.t.Context(), traffic.Burst{Request: r, Parallel: 100, Every: 25 * time.Millisecond})
			k.must(k.t, err)
			all = append(all, a)
		}
	}
	return all
}

// calm ends the churn. A connection that began while the fast path was dead may have given
// up waiting; no other outcome than that and an answer is good.
func (k *killer) calm(all []*lab.Attempts) {
	k.t.Helper()
	outcomes := map[traffic.Outcome]int{}
	for _, a := range all {
		answers, err := a.Stop(k.t.Context())
		k.must(k.t, err)
		for _, one := range answers {
			outcomes[one.Outcome]++
			if one.Outcome != traffic.OK && one.Outcome != traffic.Timeout {
				k.t.Errorf("a new connection from %s: %s", one.Local, one)
			}
		}
	}
	k.t.Logf("new connections meanwhile: %v", outcomes)
	if outcomes[traffic.OK] == 0 {
		k.t.Error("no new connection was answered at all")
	}
}

// wait begins a TCP connection of each family that nobody can decide about, and returns
// when packets have been dropped for it. The result wants both to be answered.
func (k *killer) wait(from string) (answered func()) {
	k.t.Helper()
	before := k.noWorker()
	answers := make(chan traffic.Answer, 2)
	for _, family := range []int{4, 6} {
		go func() {
			r := way{"tcp", family}.to("web")
			r.Timeout = patience
			a, err := k.host(k.t, from).Dial(k.t.Context(), r)
			if err != nil {
				k.t.Error(err)
			}
			answers <- a
		}()
	}
	within(k.t, patience, "drop of two SYNs", func() bool { return k.noWorker() >= before+2 })
	return func() {
		k.t.Helper()
		for range 2 {
			if a := <-answers; a.Outcome != traffic.OK {
				k.t.Errorf("a connection from %s that began without a fast path: %s", from, a)
			} else {
				k.waited++
			}
		}
	}
}

// noWorker counts packets of n1 for which there was no socket. The agent may be dead.
func (k *killer) noWorker() uint64 {
	k.t.Helper()
	r, err := xdp.OpenCounters(k.stateFile("n1", "bpf"))
	k.must(k.t, err)
	defer r.Close()
	c, err := r.Counters()
	k.must(k.t, err)
	return c.Reasons[reason.NoWorker].Packets
}

// cycle kills once and starts again.
func (k *killer) cycle(i int) {
	t := k.t
	time.Sleep(rand.N(100 * time.Millisecond)) // the moment is the point
	k.must(t, k.node.KillFastpath(t.Context()))
	k.left()
	if i%4 == 3 { // and once more in the middle of a start
		k.must(t, k.node.StartFastpath(t.Context()))
		time.Sleep(rand.N(150 * time.Millisecond))
		k.must(t, k.node.KillFastpath(t.Context()))
		k.halfway++
		k.left()
	}
	if i%5 == 4 {
		k.must(t, k.node.KillAgent(t.Context()))
	}
	answered := func() {}
	if i%waits == 0 {
		answered = k.wait([]string{"shopper", "n1", lab.OutsideName}[i/waits%3])
	}
	begin := time.Now()
	k.must(t, k.node.StartFastpath(t.Context()))
	k.served(begin)
	k.sound()
	answered()
	if i%5 == 4 {
		k.must(t, k.node.StartAgent(t.Context()))
		k.cluster.ready(t)
	}
}

// served waits until a new flow is served, and notes how long that took.
func (k *killer) served(begin time.Time) {
	k.t.Helper()
	r := way{"udp", 4}.to("web")
	r.Timeout = 10 * time.Millisecond
	within(k.t, patience, "new flow served", func() bool { return k.dial(k.t, "shopper", r).Outcome == traffic.OK })
	k.serve = append(k.serve, time.Since(begin))
	b, err := os.ReadFile(k.stateFile("n1", "fastpath.json"))
	k.must(k.t, err)
	var s struct {
		StartSeconds float64 `json:"startSeconds"`
		FlowsKept    bool    `json:"flowsKept"`
	}
	k.must(k.t, json.Unmarshal(b, &s))
	if !s.FlowsKept {
		k.t.Errorf("the flow table was not taken over: %s", b)
	}
	k.started = append(k.started, time.Duration(s.StartSeconds*float64(time.Second)))
}

// left looks at the flow table that a kill has left: it can be repaired, and is whole then.
func (k *killer) left() {
	k.t.Helper()
	slots, tags := k.memory()
	_, found, err := conntrack.Map(slots, tags)
	if err != nil || found.Fresh || found.Damaged > 0 {
		k.t.Errorf("the flow table after a kill: %+v, %v", found, err)
		return
	}
	k.torn, k.half = k.torn+found.Torn, k.half+found.Half
	table, again, err := conntrack.Map(slots, tags)
	if err != nil || again.Torn+again.Half+again.Damaged > 0 || again.Flows != found.Flows {
		k.t.Errorf("the flow table after its repair: %+v, then %+v, %v", found, again, err)
		return
	}
	if n := pairs(k.t, &table.Reader); n != again.Flows {
		k.t.Errorf("%d flows in the repaired table, its report says %d", n, again.Flows)
	}
}

// pairs counts flows, each of which must have its other direction.
func pairs(t *testing.T, r *conntrack.Reader) (n int) {
	t.Helper()
	var peer conntrack.Flow
	r.Range(func(f *conntrack.Flow) bool {
		switch {
		case !r.Peer(f, &peer):
			t.Errorf("%v has no other direction", f.Tuple)
		case f.Flags&conntrack.FlagReply == 0:
			n++
		}
		return true
	})
	return n
}

// sound wants the table of the running fast path to be whole. A copy that is made while a
// flow comes or goes may show half of it: then the next one is looked at.
func (k *killer) sound() {
	k.t.Helper()
	eventually(k.t, "sound flow table", func() bool {
		slots, tags := k.memory()
		_, found, err := conntrack.Map(slots, tags)
		return err == nil && found.Torn+found.Half+found.Damaged == 0 && found.Flows > 0
	})
}

// memory copies the pinned flow table of n1.
func (k *killer) memory() (slots, tags []byte) {
	k.t.Helper()
	return k.pinned("flows"), k.pinned("flow_tags")
}

func (k *killer) pinned(name string) []byte {
	k.t.Helper()
	m, err := ebpf.LoadPinnedMap(k.stateFile("n1", "bpf/lace/maps/"+name), nil)
	k.must(k.t, err)
	defer m.Close()
	size := int(m.MaxEntries() * m.ValueSize())
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	k.must(k.t, err)
	defer unix.Munmap(b)
	return slices.Clone(b)
}

// figures prints how long starts took.
func (k *killer) figures() {
	k.t.Logf("%d kills and %d during a start; they left %d torn and %d half entries, all repaired", len(k.started), k.halfway, k.torn, k.half)
	k.t.Logf("%d connections began while there was none, and were answered afterwards", k.waited)
	k.t.Logf("restart, from the start of the process: ready after %s, first new flow served after %s", spread(k.started), spread(k.serve))
}

// spread is median, 95th of a hundred and largest.
func spread(d []time.Duration) string {
	s := slices.Sorted(slices.Values(d))
	if len(s) == 0 {
		return "nothing"
	}
	at := func(q float64) time.Duration { return s[int(q*float64(len(s)-1))].Round(time.Millisecond) }
	return fmt.Sprintf("%s (median; 95%% %s, largest %s)", at(0.5), at(0.95), at(1))
}
