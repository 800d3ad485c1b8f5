package dir

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// record is a sink that remembers.
type record struct {
	mu       sync.Mutex
	objects  map[string]source.Change
	problems []model.Problem
	synced   int
	early    []string // what was there when it was synced
	changed  chan struct{}
}

func (r *record) Apply(changes []source.Change, problems []model.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		if c.Object == nil {
			delete(r.objects, c.Name.Name)
		} else {
			r.objects[c.Name.Name] = c
		}
	}
	r.problems = problems
	r.signal()
}

func (r *record) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced++
	r.early = r.names()
	r.signal()
}

func (r *record) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *record) names() []string {
	var out []string
	for n := range r.objects {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// wait waits until the objects are those.
func (r *record) wait(t *testing.T, what, want string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		r.mu.Lock()
		got := strings.Join(r.names(), " ")
		problems := r.problems
		done := got == want && r.synced > 0
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("%s: objects %q, want %q; problems %v", what, got, want, problems)
		}
	}
}

// complains waits for a Problem.
func (r *record) complains(t *testing.T, reason string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		r.mu.Lock()
		problems := r.problems
		r.mu.Unlock()
		if slices.ContainsFunc(problems, func(p model.Problem) bool { return p.Reason == reason }) {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("Problems %v, want %s", problems, reason)
		}
	}
}

// start runs a Dir; polling is slow unless the test is about it.
func start(t *testing.T, path string, poll time.Duration) *record {
	t.Helper()
	r := &record{objects: map[string]source.Change{}, changed: make(chan struct{}, 1)}
	d := New(path)
	d.Poll, d.Settle, d.Log = poll, 20*time.Millisecond, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, r) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const never = time.Hour // notices alone must do

func TestNotices(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.yaml"), node("n1"))
	put(t, filepath.Join(dir, "b.yaml"), node("n2"))
	r := start(t, dir, never)
	r.wait(t, "what is there at the start", "n1 n2")
	if got := strings.Join(r.early, " "); got != "n1 n2" {
		t.Errorf("synced with %q, want everything that was there", got)
	}
	put(t, filepath.Join(dir, "a.yaml"), node("n1")+"---\n"+node("n3"))
	r.wait(t, "a file is written in place", "n1 n2 n3")
	put(t, filepath.Join(dir, ".a.tmp"), node("n4"))
	if err := os.Rename(filepath.Join(dir, ".a.tmp"), filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	r.wait(t, "a file is replaced", "n2 n4")
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	r.wait(t, "a file is removed", "n4")
	if r.synced != 1 {
		t.Errorf("synced %d times, want once", r.synced)
	}
}

// TestConfigMap: a mounted ConfigMap is links through a link that is swapped.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	mount := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, version, "a.yaml"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("..2026_1", node("n1"))
	if err := os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir, never)
	r.wait(t, "mounted", "n1")
	mount("..2026_2", node("n2"))
	r.wait(t, "swapped", "n2")
}

// TestWatchFollowsThePath: after a look at the path, notices come from the folder that is
// there now.
func TestWatchFollowsThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifests")
	w := watch(path, slog.New(slog.DiscardHandler))
	defer w.close()
	for _, step := range []string{"it appears", "it is replaced"} {
		_ = os.Rename(path, path+".old")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		w.renew()
		for quiet := false; !quiet; { // of the folder of before
			select {
			case <-w.notices:
			case <-time.After(50 * time.Millisecond):
				quiet = true
			}
		}
		put(t, filepath.Join(path, "a.yaml"), node("n1"))
		select {
		case <-w.notices:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: no notice of a new file", step)
		}
	}
}

// TestPoll: what gives no notice is found all the same.
func TestPoll(t *testing.T) {
	top := t.TempDir()
	link := filepath.Join(top, "manifests")
	swap := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(top, version), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(top, version, "a.yaml"), text)
		if err := os.Symlink(version, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, link, 20*time.Millisecond)
	r.complains(t, "FolderUnreadable")
	r.mu.Lock()
	if r.synced != 0 {
		t.Error("synced with a folder that is not there")
	}
	r.mu.Unlock()
	swap("v1", node("n1"))
	r.wait(t, "the folder appears", "n1")
	swap("v2", node("n2"))
	r.wait(t, "the folder is swapped for another", "n2")
	put(t, filepath.Join(top, "v2", "b.yaml"), node("n3"))
	r.wait(t, "the other folder is followed", "n2 n3")
}

// TestTrigger: a change carries the time at which its file was written.
func TestTrigger(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, never)
	before := time.Now()
	put(t, filepath.Join(dir, "a.yaml"), node("n1"))
	r.wait(t, "written", "n1")
	after := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	// File times come from a coarser clock, up to a tick behind.
	if got := r.objects["n1"].Trigger; got.Before(before.Add(-20*time.Millisecond)) || got.After(after) {
		t.Errorf("trigger %v is not between %v and %v", got, before, after)
	}
}
