package agent

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

// spoken is a publisher of which only the published state is played.
type spoken struct {
	state  *publish.State
	early  []model.Problem // before there is a state
	queued time.Time
}

func (s *spoken) State() *publish.State { return s.state }

func (s *spoken) Problems() []model.Problem {
	if s.state == nil {
		return s.early
	}
	return s.state.Problems
}

func (s *spoken) Queued() time.Time       { return s.queued }
func (s *spoken) LastQueued() time.Time   { return s.queued }
func (s *spoken) Pending(source.Kind) int { return 0 }

// nowhere is a sink that forgets.
type nowhere struct{}

func (nowhere) Apply([]source.Change, []model.Problem) {}
func (nowhere) Synced()                                {}

// scene is an observer over a state directory in which the fast path is played by files.
type scene struct {
	t *testing.T
	*observer
	said    *spoken
	passing *tally
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c := &Config{
		StateDir: t.TempDir(), BPFFS: t.TempDir(), NodeName: "n1", SourceName: "dir:/etc/lace",
		Version: "v1", Log: slog.New(slog.DiscardHandler),
	}
	said, passing := new(spoken), newTally(nowhere{}, "n1")
	return &scene{t, newObserver(c, said, passing, newRepairs()), said, passing}
}

// fastpath lets two workers beat, as long ago as given, using a generation.
func (s *scene) fastpath(generation uint64, ages ...time.Duration) *counter.File {
	s.t.Helper()
	f, err := counter.Create(s.config.path("counters"), len(ages))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.Close() })
	f.Set(counter.Generation, generation)
	for i, age := range ages {
		f.Worker(i).Publish(monotonic() - age.Nanoseconds())
	}
	return f
}

// sockets is what the fast path says of the programs of sockets.
func (s *scene) sockets(state string) {
	s.t.Helper()
	if err := os.WriteFile(s.config.path("fastpath.json"), []byte(`{"sockets":"`+state+`"}`), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) published(generation uint64) {
	s.said.state = &publish.State{Generation: generation, Published: time.Unix(1_700_000_000, 0), Bytes: 4096}
	s.said.state.Attachments.Ports = []model.Port{{ID: 1, Kind: model.PortHost}}
}

func TestWhatTheNodeWaitsFor(t *testing.T) {
	cases := []struct {
		name  string
		begin func(s *scene)
		waits string // empty: ready
		alive bool
	}{
		{"the source", func(s *scene) { s.published(7); s.fastpath(7, 0) }, "dir:/etc/lace", true},
		{"the first snapshot", func(s *scene) { s.passing.Synced(); s.fastpath(0, 0) }, "first snapshot", true},
		{"a fast path, on a new node", func(s *scene) { s.passing.Synced(); s.published(7) }, "has not run here yet", false},
		{"a fast path whose counters nobody can read", func(s *scene) { s.passing.Synced(); s.published(7); s.sockets("attached") }, "the file counters is missing in ", false},
		{"a fast path that is gone", func(s *scene) { s.passing.Synced(); s.published(7); s.fastpath(7, time.Minute, time.Minute) }, "is not running", false},
		{"a fast path whose workers have not begun", func(s *scene) { s.passing.Synced(); s.published(7); s.unborn() }, "is not running", false},
		{"a fast path that has not taken the snapshot up", func(s *scene) { s.passing.Synced(); s.published(7); s.fastpath(6, 0) }, "last snapshot", true},
		{"the trunk, which the node's own packets take", func(s *scene) {
			s.passing.Synced()
			s.published(7)
			s.said.state.Attachments.Ports = []model.Port{{ID: 2, Kind: model.PortPod}}
			s.fastpath(7, 0)
		}, "lace0", true},
		{"nothing", func(s *scene) { s.passing.Synced(); s.published(7); s.fastpath(7, 0, 0) }, "", true},
		{"nothing, with a fast path that is ahead of a restarted agent", func(s *scene) { s.passing.Synced(); s.published(7); s.fastpath(8, 0) }, "", true},
		{"nothing, with one worker that stands still", func(s *scene) { s.passing.Synced(); s.published(7); s.fastpath(7, 0, time.Minute) }, "", true},
		{"a file that is no counter file", func(s *scene) {
			s.passing.Synced()
			s.published(7)
			s.write("counters", strings.Repeat("x", 4096))
		}, "not a counter file", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.begin(s)
			got := s.Status()
			if got.Ready != (c.waits == "") || !strings.Contains(got.Waiting, c.waits) || got.Fastpath.Alive != c.alive {
				t.Errorf("ready %v, waiting for %q, fast path alive %v; want it to wait for %q, alive %v", got.Ready, got.Waiting, got.Fastpath.Alive, c.waits, c.alive)
			}
			if got.Mode != "lace" || got.Node != "n1" || got.Version != "v1" {
				t.Errorf("status %+v", got)
			}
		})
	}
}

// unborn leaves a counter file in which no worker has given a sign of life.
func (s *scene) unborn() {
	f, err := counter.Create(s.config.path("counters"), 1)
	if err != nil {
		s.t.Fatal(err)
	}
	f.Close()
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.config.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestAWorkerThatStandsStillIsNamed(t *testing.T) {
	s := newScene(t)
	s.fastpath(7, 0, time.Minute)
	if got := s.Status().Fastpath; !strings.HasPrefix(got.Message, "1 of 2 workers") {
		t.Errorf("message %q, want one about 1 of 2 workers", got.Message)
	}
}

func TestStatusOfTheFastPath(t *testing.T) {
	s := newScene(t)
	f := s.fastpath(7, 0)
	f.Set(counter.Flows, 12)
	f.Set(counter.HalfOpen, 3)
	f.Set(counter.FlowCapacity, 100)
	w := f.Worker(0)
	w.Count(reason.NewFlow, 60)
	w.Count(reason.Fragment, 1500)
	w.Write(monotonic())
	b, err := json.Marshal(map[string]any{
		"pid": 42, "kernel": "6.18", "snapshotLayouts": []int{1}, "xdpMode": "native", "socketMode": "copy",
		"workers": 1, "queues": 1, "trunkMTU": 3498, "flowSlots": 200,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write("fastpath.json", string(b))
	got := s.Status().Fastpath
	if got.PID != 42 || got.Kernel != "6.18" || got.XDPMode != "native" || got.SocketMode != "copy" || got.TrunkMTU != 3498 ||
		got.Flows != 12 || got.HalfOpen != 3 || got.FlowsMax != 100 || got.Packets != 2 || got.Bytes != 1560 || got.Layouts[0] != 1 {
		t.Errorf("%+v", got)
	}

	s.write("fastpath.json", "{")
	if got := s.Status().Fastpath; !got.Alive || !strings.Contains(got.Message, "fastpath.json") {
		t.Errorf("with a broken fastpath.json: %+v, want alive and a message about the file", got)
	}
}

func TestHealthFollowsBothProcesses(t *testing.T) {
	s := newScene(t)
	at := time.Unix(1_700_000_000, 0)
	step := func(what string, uses uint64, alive bool, now time.Time, unapplied time.Time) {
		t.Helper()
		f := fastpath{alive: alive, totals: &counter.Totals{}}
		f.totals.Gauges[counter.Generation] = uses
		s.watch(f, now)
		if got := s.health().Unapplied; !got.Equal(unapplied) {
			t.Errorf("%s: unapplied since %v, want %v", what, got, unapplied)
		}
	}
	none := time.Time{}
	step("before the first publication the fast path owes nothing", 0, false, at, none)
	s.published(7)
	step("published, not used yet", 6, true, at.Add(1), at.Add(1))
	step("still not used", 6, true, at.Add(2), at.Add(1))
	s.published(8)
	step("a further publication does not make it younger", 6, true, at.Add(3), at.Add(1))
	step("used", 8, true, at.Add(4), none)
	step("the fast path died", 8, false, at.Add(5), at.Add(5))
	step("and came back", 8, true, at.Add(6), none)

	s.said.queued = at
	if got := s.health(); !got.Queued.IsZero() {
		t.Errorf("queued since %v before the source has delivered everything, want healthy", got.Queued)
	}
	s.passing.Synced()
	if got := s.health(); !got.Queued.After(at) {
		t.Errorf("queued since %v, want since the source has delivered everything", got.Queued)
	}
	s.said.queued = time.Now().Add(time.Second)
	s.passing.Apply([]source.Change{{Kind: source.Node, Name: model.Name{Name: "n1"}, Object: &corev1.Node{}}}, nil)
	got := s.health()
	if !got.Queued.Equal(s.said.queued) || !got.Eligible || !got.Updated.Equal(s.said.state.Published) {
		t.Errorf("health %+v", got)
	}
}

// TestADeadFastPathIsVisible: as a Problem at once, and as a node that gets no traffic
// when it does not come back.
func TestADeadFastPathIsVisible(t *testing.T) {
	slice := model.Problem{Kind: "EndpointSlice", Object: "default/web", Reason: "NoService", Message: "m"}
	cases := []struct {
		name  string
		begin func(s *scene)
		want  string // Problems by kind, object and reason
		says  string
		down  bool
	}{
		{"never started, nothing published", func(*scene) {}, "Node n1 FastpathDown", "start it", true},
		{"never started, with a source that is not there", func(s *scene) {
			s.said.early = []model.Problem{{Kind: "File", Object: "/absent", Reason: "FolderUnreadable"}}
		}, "File /absent FolderUnreadable, Node n1 FastpathDown", "has not run here yet", true},
		{"gone, among other Problems", func(s *scene) {
			s.published(7)
			s.said.state.Problems = []model.Problem{slice}
			s.fastpath(7, time.Minute)
		}, "EndpointSlice default/web NoService, Node n1 FastpathDown", "start it", true},
		{"alive", func(s *scene) { s.published(7); s.said.state.Problems = []model.Problem{slice}; s.fastpath(7, 0) },
			"EndpointSlice default/web NoService", "", false},
		{"alive, nothing published", func(s *scene) { s.fastpath(0, 0) }, "", "", false},
		{"alive, with something that it cannot put right", func(s *scene) { s.published(7); s.fastpath(7, 0).Set(counter.Broken, 1) },
			"Node n1 FastpathImpaired", "its log names it", false},
		{"alive, with the programs of sockets in place", func(s *scene) { s.published(7); s.fastpath(7, 0); s.sockets("attached") }, "", "", false},
		{"alive, without a cgroup hierarchy", func(s *scene) { s.published(7); s.fastpath(7, 0); s.sockets("no hierarchy: mount one") },
			"Node n1 OwnNodePortsUnreached", "its own node ports, everybody else does; it is tried again: no hierarchy: mount one", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.begin(s)
			var got, said []string
			if state := s.State(); state != nil {
				for _, p := range state.Problems {
					got, said = append(got, p.Kind+" "+p.Object+" "+p.Reason), append(said, p.Message)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("Problems (-want +got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(said, " "), c.says) {
				t.Errorf("messages %q, want one with %q", said, c.says)
			}
			if n := s.Status().Objects.Problems; n != len(got) {
				t.Errorf("status counts %d Problems, want %d", n, len(got))
			}
			if down := s.health().Down; down.IsZero() == c.down {
				t.Errorf("down since %v, want down %v", down, c.down)
			}
		})
	}
}

// TestSinceWhenTheFastPathIsDown: a young agent does not blame it for the time before.
func TestSinceWhenTheFastPathIsDown(t *testing.T) {
	s := newScene(t)
	now := s.started.Add(time.Hour)
	for _, c := range []struct {
		name  string
		f     fastpath
		since time.Duration // before now; 0: it is not down
	}{
		{"alive", fastpath{alive: true, silence: time.Millisecond}, 0},
		{"silent for a while", fastpath{silence: 3 * time.Second}, 3 * time.Second},
		{"silent since before this agent began", fastpath{silence: 2 * time.Hour}, time.Hour},
		{"never heard of", fastpath{}, time.Hour},
	} {
		want := time.Time{}
		if c.since > 0 {
			want = now.Add(-c.since)
		}
		if got := s.down(c.f, now); !got.Equal(want) {
			t.Errorf("%s: down since %v, want %v", c.name, got, want)
		}
	}
	s.watch(fastpath{alive: true, totals: new(counter.Totals)}, now.Add(-time.Minute))
	if got, want := s.down(fastpath{}, now), now.Add(-time.Minute); !got.Equal(want) {
		t.Errorf("counters made anew by a start: down since %v, want since it was last seen alive, %v", got, want)
	}
}

func TestTally(t *testing.T) {
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		change(n)
		return n
	}
	tainted := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}} }
	}
	cases := []struct {
		name     string
		node     string
		object   any
		eligible bool
	}{
		{"this node, well", "n1", node(func(*corev1.Node) {}), true},
		{"this node, unschedulable", "n1", node(tainted("node.kubernetes.io/unschedulable")), true},
		{"this node, about to be removed by the autoscaler", "n1", node(tainted("ToBeDeletedByClusterAutoscaler")), false},
		{"this node, being deleted", "n1", node(func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), false},
		{"this node, gone", "n1", nil, false},
		{"another node", "n2", node(func(*corev1.Node) {}), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tl := newTally(nowhere{}, "n1")
			tl.Apply([]source.Change{{Kind: source.Node, Name: model.Name{Name: c.node}, Object: c.object}}, nil)
			if got := tl.read().eligible; got != c.eligible {
				t.Errorf("eligible %v, want %v", got, c.eligible)
			}
		})
	}
}

func TestTallyCountsObjects(t *testing.T) {
	tl := newTally(nowhere{}, "n1")
	name := func(s string) model.Name { return model.Name{Namespace: "default", Name: s} }
	tl.Apply([]source.Change{
		{Kind: source.Service, Name: name("a"), Object: &corev1.Service{}},
		{Kind: source.Service, Name: name("b"), Object: &corev1.Service{}},
		{Kind: source.Service, Name: name("a"), Object: &corev1.Service{}},
	}, nil)
	tl.Apply([]source.Change{{Kind: source.Service, Name: name("b")}}, nil)
	got := tl.read()
	if got.objects["Service"] != 1 || got.objects["EndpointSlice"] != 0 || !got.synced.IsZero() {
		t.Errorf("%+v: want one Service, and the kinds without objects shown", got)
	}
	if _, shown := got.objects["Node"]; !shown {
		t.Errorf("%+v: want Node shown as 0", got.objects)
	}
}

func TestReadingWithoutAnythingToRead(t *testing.T) {
	s := newScene(t)
	got := s.reading()
	if got.Go != nil || got.Kernel != nil || got.Fastpath.Alive || got.Published.Generation != 0 || got.Published.Problems["Node"] != 1 {
		t.Errorf("%+v, want nothing but that the fast path is down", got)
	}
	if _, err := s.Flows(); err == nil || !strings.Contains(err.Error(), "there is no flow table") {
		t.Errorf("flows: %v, want that there is no table", err)
	}
	s.published(7)
	s.said.state.Problems = []model.Problem{{Kind: "Port"}, {Kind: "Port"}, {Kind: "Service"}}
	got = s.reading()
	if got.Published.Generation != 7 || got.Published.Problems["Port"] != 2 || got.Published.Bytes != 4096 {
		t.Errorf("%+v", got.Published)
	}
}
