package health

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 29, 15, 0, 0, 0, time.UTC)

func TestProbes(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	cases := []struct {
		name    string
		state   State
		healthz int
		livez   int
	}{
		{"before the first change both are well", State{Eligible: true}, 200, 200},
		{"all is published and in use", State{Updated: ago(time.Hour), Eligible: true}, 200, 200},
		{"a change waits for a minute", State{Queued: ago(60 * time.Second), Eligible: true}, 200, 200},
		{"a change waits for longer than a minute", State{Queued: ago(61 * time.Second), Eligible: true}, 503, 503},
		{"the fast path takes a minute to take a snapshot up", State{Updated: ago(time.Hour), Unapplied: ago(60 * time.Second), Eligible: true}, 200, 200},
		{"the fast path takes longer than that: no traffic, but the agent is not to blame", State{Updated: ago(time.Hour), Unapplied: ago(61 * time.Second), Eligible: true}, 503, 200},
		{"the fast path has been down for 5 s, which is a restart", State{Updated: ago(time.Hour), Down: ago(5 * time.Second), Eligible: true}, 200, 200},
		{"the fast path has been down for longer: no traffic, but the agent is not to blame", State{Updated: ago(time.Hour), Down: ago(5*time.Second + time.Millisecond), Eligible: true}, 503, 200},
		{"the node is being deleted or unknown: no traffic, the agent lives on", State{Updated: ago(time.Hour)}, 503, 200},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			state := func() State { return c.state }
			for path, want := range map[string]int{"/healthz": c.healthz, "/livez": c.livez} {
				rule := healthz
				if path == "/livez" {
					rule = livez
				}
				w := httptest.NewRecorder()
				var code int
				var checks []Check
				probe(state, func() time.Time { return now }, rule, func(c int, all []Check) { code, checks = c, all })(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != want {
					t.Errorf("%s: %d, want %d; body %s", path, w.Code, want, w.Body)
				}
				fails := slices.ContainsFunc(checks, func(c Check) bool { return !c.Holds })
				if code != w.Code || len(checks) == 0 || fails != (want != 200) {
					t.Errorf("%s: told of %d because of %v, want %d", path, code, checks, want)
				}
			}
		})
	}
}

func TestBodies(t *testing.T) {
	state := func() State { return State{Updated: now.Add(-time.Second), Eligible: false} }
	family := map[string]any{"lastUpdated": "2026-11-29T14:59:59Z", "healthy": true}
	cases := []struct {
		name string
		rule func(State, time.Time) Answer
		want map[string]any
	}{
		{"healthz tells load balancers about the node too, which does not make the proxy an unhealthy one", healthz, map[string]any{
			"lastUpdated": "2026-11-29T14:59:59Z", "currentTime": "2026-11-29T15:00:00Z",
			"nodeEligible": false, "healthy": true, "status": map[string]any{"IPv4": family, "IPv6": family},
		}},
		{"livez does not know of the node; while all is well it is as of now", livez, map[string]any{
			"lastUpdated": "2026-11-29T15:00:00Z", "currentTime": "2026-11-29T15:00:00Z",
			"healthy": true, "status": map[string]any{"IPv4": family, "IPv6": family},
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			probe(state, func() time.Time { return now }, c.rule, func(int, []Check) {})(w, httptest.NewRequest(http.MethodGet, "/", nil))
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v", w.Body, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if h := w.Header(); h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", h)
			}
		})
	}
}
