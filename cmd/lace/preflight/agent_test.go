package preflight

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// stateDir is a state directory with a socket at which nobody answers yet.
func stateDir(t *testing.T) (string, *net.UnixListener) {
	t.Helper()
	dir, err := os.MkdirTemp("", "lace-check-") // a short path: socket names are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "agent.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return dir, l
}

// lockAgent holds the lock that a running agent holds.
func lockAgent(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "agent.lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
}

// TestAgentIsAsked: one that answers, one that does not, and none are told apart.
func TestAgentIsAsked(t *testing.T) {
	broken := api.Problem{Kind: "Service", Object: "default/web", Field: "spec.clusterIP", Reason: "BadAddress", Message: "x is no address; correct it"}
	for _, c := range []struct {
		name  string
		setUp func(t *testing.T) string
		want  Agent // Silence: a part of it
	}{
		{"no state directory", func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") }, Agent{Absent: true}},
		{"an empty one", func(t *testing.T) string { return t.TempDir() }, Agent{Absent: true}},
		{"a socket that an agent left behind", func(t *testing.T) string {
			dir, l := stateDir(t)
			l.SetUnlinkOnClose(false)
			l.Close()
			return dir
		}, Agent{Absent: true}},
		{"an agent without its socket", func(t *testing.T) string {
			dir := t.TempDir()
			lockAgent(t, dir)
			return dir
		}, Agent{Silence: "an agent runs, but nobody listens at "}},
		{"an agent that does not answer", func(t *testing.T) string {
			dir, _ := stateDir(t)
			return dir
		}, Agent{Silence: "does not answer (waited "}},
		{"an agent that answers", func(t *testing.T) string {
			dir, l := stateDir(t)
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != api.PathProblems {
					w.WriteHeader(http.StatusNotFound)
				}
				json.NewEncoder(w).Encode(api.List[api.Problem]{Items: []api.Problem{broken}})
			})}
			go server.Serve(l)
			t.Cleanup(func() { server.Close() })
			return dir
		}, Agent{Problems: []api.Problem{broken}}},
		{"that of a simulated demo", func(t *testing.T) string {
			dir, l := stateDir(t)
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == api.PathStatus {
					json.NewEncoder(w).Encode(api.Status{Simulated: true})
					return
				}
				json.NewEncoder(w).Encode(api.List[api.Problem]{Items: []api.Problem{broken}})
			})}
			go server.Serve(l)
			t.Cleanup(func() { server.Close() })
			return dir
		}, Agent{Problems: []api.Problem{broken}, Simulated: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := askAgent(c.setUp(t))
			if (c.want.Silence == "") != (got.Silence == "") || !strings.Contains(got.Silence, c.want.Silence) {
				t.Errorf("silence %q, want one with %q", got.Silence, c.want.Silence)
			}
			got.Silence, c.want.Silence = "", ""
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestProblemsKeepNothingFromRunning: each is a line of its own, and warns.
func TestProblemsKeepNothingFromRunning(t *testing.T) {
	a, b := api.Problem{Kind: "Service", Object: "default/web", Field: "spec.clusterIP", Reason: "BadAddress", Message: "x is no address; correct it"},
		api.Problem{Kind: "File", Object: "a.yaml", Reason: "Empty", Message: "it is empty"}
	written := a
	written.Place = api.Place{File: "web.yaml", Document: 2, Line: 9}
	for _, c := range []struct {
		name  string
		agent Agent
		want  []string
	}{
		{"no agent beside a fast path", Agent{Absent: true}, []string{"warn problems not known: lace-agent does not run beside the fast path, which goes on with the last tables"}},
		{"no Problem", Agent{}, []string{"ok problems none"}},
		{"two", Agent{Problems: []api.Problem{a, b}}, []string{
			"warn problem Service default/web spec.clusterIP: x is no address; correct it (BadAddress)",
			"warn problem File a.yaml: it is empty (Empty)"}},
		{"one that is written in a folder", Agent{Problems: []api.Problem{written}}, []string{
			"warn web.yaml document 2 line 9 Service default/web spec.clusterIP: x is no address; correct it (BadAddress)"}},
		{"no answer", Agent{Silence: "late"}, []string{"warn problems not known: late"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := healthy()
			facts.Agent = c.agent
			findings := Judge(facts)
			var got []string
			for _, f := range findings {
				if f.Problem != nil || f.Check == "problems" {
					got = append(got, string(f.Verdict)+" "+f.Check+" "+f.Found)
				}
				if f.Verdict == Warn && f.Problem == nil && f.Do == "" {
					t.Errorf("%+v: want the parts of a Problem, or what to do", f)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("findings about Problems (-want +got):\n%s", d)
			}
			if Failed(findings) {
				t.Error("something keeps Lace from running")
			}
		})
	}
}

// TestNoLaceAtAll: where nothing runs, nothing is to be known of Problems.
func TestNoLaceAtAll(t *testing.T) {
	f := healthy()
	f.FastpathAlive, f.Fastpath, f.Agent = false, nil, Agent{Absent: true}
	if got := judgeAgent(&f); len(got) != 1 || got[0].Verdict != OK {
		t.Errorf("%+v, want one that is fine", got)
	}
	f.Agent = Agent{Simulated: true}
	if got := judgeFastpath(f); got.Verdict != OK || !strings.Contains(got.Found, "simulated") {
		t.Errorf("%+v, want it told as simulated", got)
	}
}
