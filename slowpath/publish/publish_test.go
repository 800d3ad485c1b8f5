package publish_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run starts a publisher that is synced and attached.
func run(t testing.TB, c publish.Config) *publish.Publisher {
	t.Helper()
	p := runUnready(t, c)
	p.Synced()
	p.SetAttachments(model.Attachments{}, nil)
	return p
}

func runUnready(t testing.TB, c publish.Config) *publish.Publisher {
	t.Helper()
	c.Node, c.Log = "n1", slog.New(slog.DiscardHandler)
	p, err := publish.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return p
}

// await waits for a State that is as wanted.
func await(t testing.TB, p *publish.Publisher, what string, want func(*publish.State) bool) *publish.State {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		changed := p.Changed()
		if s := p.State(); s != nil && want(s) {
			return s
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("never came: %s; State is %+v", what, p.State())
		}
	}
}

func settled(t testing.TB, p *publish.Publisher) *publish.State {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if p.Queued().IsZero() {
			return p.State()
		}
	}
	t.Fatal("changes are still queued")
	return nil
}

// pair is Service s<i> with one slice of the endpoints that are given by their last byte.
func pair(i int, endpoints ...byte) []source.Change {
	name := model.Name{Namespace: "demo", Name: fmt.Sprintf("s%d", i)}
	svc := &corev1.Service{}
	svc.Namespace, svc.Name = name.Namespace, name.Name
	svc.Spec.ClusterIP = vip(i).String()
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	return []source.Change{{Kind: source.Service, Name: name, Object: svc}, sliceOf(i, endpoints...)}
}

func vip(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}) }

func sliceOf(i int, endpoints ...byte) source.Change {
	es := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	es.Namespace, es.Name = "demo", fmt.Sprintf("s%d-1", i)
	es.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%d", i)}
	port := int32(8080)
	es.Ports = []discoveryv1.EndpointPort{{Port: &port}}
	for _, e := range endpoints {
		a := netip.AddrFrom4([4]byte{10, 128 + byte(i>>8), byte(i), e})
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()}})
	}
	return source.Change{Kind: source.EndpointSlice, Name: model.Name{Namespace: "demo", Name: es.Name}, Object: es}
}

func gone(c source.Change) source.Change { c.Object = nil; return c }

// frontends reads the snapshot file.
func frontends(t testing.TB, path string) map[string]string {
	t.Helper()
	s, err := table.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := map[string]string{}
	for _, f := range s.Frontends() {
		var words []string
		for _, id := range s.Set(f.Inside) {
			words = append(words, s.Backend(id).Addr.String())
		}
		out[f.Addr.String()] = strings.Join(words, " ")
	}
	return out
}

// TestOneBrokenServiceAmongAThousand: the others are programmed.
func TestOneBrokenServiceAmongAThousand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	p := run(t, publish.Config{Path: path})
	var all []source.Change
	for i := range 1000 {
		c := pair(i, 1, 2)
		if i == 500 {
			c[0].Object.(*corev1.Service).Spec.ClusterIP = "10.96.1.wrong"
		}
		all = append(all, c...)
	}
	p.Apply(all, nil)
	s := await(t, p, "999 services", func(s *publish.State) bool { return len(s.Services) == 999 })
	if got := len(frontends(t, path)); got != 999 {
		t.Errorf("%d frontends in the snapshot, want 999", got)
	}
	var about []string
	for _, p := range s.Problems {
		about = append(about, p.Object+" "+p.Reason)
	}
	if d := cmp.Diff([]string{"n1 NodeMissing", "n1 NoServiceRanges", "demo/s500 BadAddress"}, about); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

// TestBurst: a Service that flips thousands of times makes few generations, and the last
// word counts.
func TestBurst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	p := run(t, publish.Config{Path: path})
	p.Apply(pair(7, 1), nil)
	settled(t, p)
	for i := range 20_000 {
		p.Apply([]source.Change{sliceOf(7, byte(i), byte(i>>8)+100)}, nil)
	}
	p.Apply([]source.Change{sliceOf(7, 42)}, nil)
	s := settled(t, p)
	if d := cmp.Diff(map[string]string{"10.96.0.7": "10.128.7.42"}, frontends(t, path)); d != "" {
		t.Errorf("frontends (-want +got):\n%s", d)
	}
	if s.Generation > 2000 {
		t.Errorf("generation %d after 20,000 changes of one object: they are not coalesced", s.Generation)
	}
}

// TestChangesInAnyOrderAndBatch: after random changes the tables are those of a fresh
// publisher that is given the objects as they are now.
func TestChangesInAnyOrderAndBatch(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		path := filepath.Join(t.TempDir(), "snapshot")
		p := run(t, publish.Config{Path: path, Settle: time.Microsecond, MaxDelay: 100 * time.Microsecond})
		now := map[string]source.Change{}
		for range 60 {
			var batch []source.Change
			for range 1 + rng.IntN(5) {
				i := rng.IntN(6)
				c := pair(i, byte(rng.IntN(4)), byte(rng.IntN(4)))[rng.IntN(2)]
				if rng.IntN(3) == 0 {
					c = gone(c)
				}
				batch = append(batch, c)
				now[string(c.Kind)+c.Name.Name] = c
			}
			p.Apply(batch, nil)
			if rng.IntN(3) == 0 {
				settled(t, p)
			}
		}
		settled(t, p)
		other := filepath.Join(t.TempDir(), "snapshot")
		q := runUnready(t, publish.Config{Path: other})
		for _, c := range now {
			q.Apply([]source.Change{c}, nil)
		}
		q.Synced()
		q.SetAttachments(model.Attachments{}, nil)
		settled(t, q)
		if d := cmp.Diff(frontends(t, other), frontends(t, path)); d != "" {
			t.Fatalf("seed %d: tables (-fresh +changed):\n%s", seed, d)
		}
		if d := cmp.Diff(names(q.State()), names(p.State())); d != "" {
			t.Fatalf("seed %d: State (-fresh +changed):\n%s", seed, d)
		}
	}
}

func names(s *publish.State) (out []string) {
	for _, svc := range s.Services {
		out = append(out, svc.Name.String())
	}
	for _, p := range s.Problems {
		out = append(out, p.String())
	}
	return out
}

// TestFileThatCannotBeWritten: the State of before stays and says why, and the change is
// published when it can be.
func TestFileThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "snapshot")
	p := run(t, publish.Config{Path: path})
	p.Apply(pair(1, 1), nil)
	settled(t, p)
	before := p.State()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	p.Apply(pair(2, 1), nil)
	s := await(t, p, "a Problem about the file", func(s *publish.State) bool {
		return slices.ContainsFunc(s.Problems, func(p model.Problem) bool { return p.Reason == "NotPublished" })
	})
	if s.Generation != before.Generation || len(s.Services) != 1 {
		t.Errorf("generation %d with %d services, want what was published: %d with 1", s.Generation, len(s.Services), before.Generation)
	}
	if p.Queued().IsZero() {
		t.Error("nothing is queued, though a change is not published")
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	s = await(t, p, "the change", func(s *publish.State) bool { return len(s.Services) == 2 })
	if s.Generation != before.Generation+1 {
		t.Errorf("generation %d, want %d: a number is not used up by an attempt", s.Generation, before.Generation+1)
	}
	if got := len(frontends(t, path)); got != 2 {
		t.Errorf("%d frontends in the file, want 2", got)
	}
}

func TestNewRefusesAPathThatCannotBeRead(t *testing.T) {
	notADir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notADir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := publish.New(publish.Config{Path: filepath.Join(notADir, "snapshot")}); err == nil || !strings.Contains(err.Error(), notADir) {
		t.Errorf("error %v, want one that names the path", err)
	}
}

// TestLatency: each published change says how long the world had been waiting; what was
// there at the start does not, nor what needs no publication.
func TestLatency(t *testing.T) {
	var mu sync.Mutex
	var told []time.Duration
	take := func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		out := told
		told = nil
		return out
	}
	p := run(t, publish.Config{
		Path:    filepath.Join(t.TempDir(), "snapshot"),
		Latency: func(d time.Duration) { mu.Lock(); defer mu.Unlock(); told = append(told, d) },
	})
	ago := func(c source.Change, d time.Duration) source.Change { c.Trigger = time.Now().Add(-d); return c }
	noted := func(c source.Change, at time.Time) source.Change {
		c.Object.(*discoveryv1.EndpointSlice).Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano)}
		return c
	}
	for _, c := range pair(1, 1) {
		p.Apply([]source.Change{ago(c, time.Hour)}, nil)
	}
	settled(t, p)
	take() // the first publication may have come before these changes, or with them

	check := func(what string, c source.Change, least, most time.Duration) {
		t.Helper()
		p.Apply([]source.Change{c}, nil)
		settled(t, p)
		got := take()
		if most == 0 && len(got) == 0 {
			return
		}
		if len(got) != 1 || got[0] < least || got[0] > most {
			t.Errorf("%s: told %v, want one from %v to %v", what, got, least, most)
		}
	}
	check("a change", ago(sliceOf(1, 2), time.Minute), time.Minute, 2*time.Minute)
	check("the same object once more", ago(sliceOf(1, 2), time.Minute), 0, 0)
	check("a note from before the start counts for nothing", noted(ago(sliceOf(1, 3), time.Minute), time.Now().Add(-time.Hour)), time.Minute, 2*time.Minute)
	check("a fresh note counts", noted(ago(sliceOf(1, 4), time.Minute), time.Now()), 0, 30*time.Second)
	check("a clock that is ahead", ago(sliceOf(1, 5), -time.Hour), 0, time.Nanosecond)
	check("a change that says nothing of time", sliceOf(1, 6), 0, 0)

	p.Apply([]source.Change{ago(sliceOf(1, 7), time.Minute), ago(sliceOf(1, 8), time.Second)}, nil)
	settled(t, p)
	if got := take(); len(got) != 1 || got[0] < time.Minute {
		t.Errorf("two changes of one object at once: told %v, want one since the first", got)
	}
}

// TestSourceProblems: they are replaced as a whole, and need no new generation.
func TestSourceProblems(t *testing.T) {
	p := run(t, publish.Config{Path: filepath.Join(t.TempDir(), "snapshot")})
	before := settled(t, p).Generation
	p.Apply(nil, []model.Problem{{Kind: "File", Object: "a.yaml", Reason: "NotYAML"}})
	await(t, p, "the Problem", func(s *publish.State) bool { return len(s.Problems) == 2 && s.Problems[0].Object == "a.yaml" })
	p.Apply(nil, nil)
	s := await(t, p, "the Problem is gone", func(s *publish.State) bool { return len(s.Problems) == 1 })
	if s.Generation != before {
		t.Errorf("generation went from %d to %d for a Problem", before, s.Generation)
	}
}

// TestOtherNodes: what is wrong with another Node is said, and concerns nobody else.
func TestOtherNodes(t *testing.T) {
	p := run(t, publish.Config{Path: filepath.Join(t.TempDir(), "snapshot")})
	n := &corev1.Node{}
	n.Name, n.Spec.PodCIDR = "n2", "nonsense"
	change := source.Change{Kind: source.Node, Name: model.Name{Name: "n2"}, Object: n}
	p.Apply([]source.Change{change}, nil)
	await(t, p, "the Problem", func(s *publish.State) bool {
		return slices.ContainsFunc(s.Problems, func(p model.Problem) bool { return p.Object == "n2" && p.Reason == "BadPrefix" })
	})
	p.Apply([]source.Change{gone(change)}, nil)
	await(t, p, "no Problem", func(s *publish.State) bool { return len(s.Problems) == 1 && s.Problems[0].Object == "n1" })
}

// TestProblemsBeforeTheFirstPublication: what keeps it from coming can be seen.
func TestProblemsBeforeTheFirstPublication(t *testing.T) {
	p := runUnready(t, publish.Config{Path: filepath.Join(t.TempDir(), "snapshot")})
	absent := model.Problem{Kind: "File", Object: "/absent", Reason: "FolderUnreadable", Message: "m"}
	p.Apply(nil, []model.Problem{absent})
	deadline := time.Now().Add(10 * time.Second)
	for len(p.Problems()) == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if d := cmp.Diff([]model.Problem{absent}, p.Problems()); d != "" || p.State() != nil {
		t.Errorf("state %v; Problems (-want +got):\n%s", p.State(), d)
	}
	p.Apply(nil, nil)
	p.Synced()
	p.SetAttachments(model.Attachments{}, nil)
	s := await(t, p, "a publication", func(s *publish.State) bool { return s.Generation > 0 })
	if d := cmp.Diff(s.Problems, p.Problems()); d != "" {
		t.Errorf("after it (-state +publisher):\n%s", d)
	}
}
