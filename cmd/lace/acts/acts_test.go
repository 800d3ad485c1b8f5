package acts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// Each act passes where all goes well, and says what it saw.
func TestActsPass(t *testing.T) {
	cases := []struct {
		play func(context.Context, *scene) (string, error)
		saw  string
	}{
		{ready, "n1 ready after"},
		{ready, "generation 3 in use, programmed in 12 ms"},
		{oneRequest, "shopper, n1 answered over TCP and UDP"},
		{oneRequest, "web-2 answers"},
		{evenShares, "3000 connections: web-1 33.3%, web-2 33.3%, web-3 33.3% (expected 33.3% each), χ² 0.00"},
		{drain, "web-2 drains with 1 of 1 streams on it: 0 broken"},
		{killFastpath, "kill -9 fastpath: 0 broken flows, gap 12 ms"},
		{killAgent, "kill -9 agent: 0 broken flows, gap 12 ms"},
		{flood, "of the others, 0 of 1 flows broke, 0 of 100 new connections failed"},
	}
	for _, c := range cases {
		s := newStub()
		saw, err := c.play(t.Context(), &scene{Stage: s, family: 4})
		if err != nil || !strings.Contains(saw, c.saw) {
			t.Errorf("saw %q, %v; want %q", saw, err, c.saw)
		}
	}
}

// One thing that goes wrong fails the act that promises it, and the text names it.
func TestActsFail(t *testing.T) {
	timeout := traffic.Answer{Outcome: traffic.Timeout, Error: "i/o timeout"}
	failing := func(_ string, b traffic.Burst, used []string) traffic.Tally {
		tally := evenly("", b, used)
		tally.Add(timeout)
		return tally
	}
	cases := []struct {
		name  string
		play  func(context.Context, *scene) (string, error)
		spoil func(*stub)
		want  string
	}{
		{"a node that never gets ready", ready, func(s *stub) { s.notReady = errors.New("no snapshot") }, "no snapshot"},
		{"a client without answer", oneRequest, func(s *stub) { s.answer = timeout }, "shopper (a pod) to web over tcp: timeout"},
		{"an explanation that denies what happens", oneRequest, func(s *stub) { s.explained.Verdict = "drop" }, "explain says drop"},
		{"an explanation with another backend", oneRequest, func(s *stub) { s.explained.Live[0].Pod = "default/web-1" }, "does not know the open connection with web-2"},
		{"a connection that fails", evenShares, func(s *stub) { s.burst = failing }, "1 of 1500 connections from shopper failed"},
		{"uneven shares", evenShares, func(s *stub) {
			s.burst = func(_ string, b traffic.Burst, _ []string) traffic.Tally {
				return evenly("", b, []string{"web-1", "web-1", "web-2", "web-3"})
			}
		}, "uneven"},
		{"a stranger that answers", evenShares, func(s *stub) { s.used = []string{"mallory"} }, "mallory"},
		{"a backend that nobody reaches", evenShares, func(s *stub) { s.used = pods[:2] }, "uneven"},
		{"a stream that breaks while its backend drains", drain, func(s *stub) { s.progress.Broken, s.progress.First = 1, "reset" }, "1 of 1 streams broke: reset"},
		{"a new connection to a backend that drains", drain, func(s *stub) {
			s.burst = func(_ string, b traffic.Burst, _ []string) traffic.Tally { return evenly("", b, pods) }
		}, "while web-2 drains"},
		{"endpoints that are never programmed", drain, func(s *stub) { s.setErr = errors.New("too late") }, "too late"},
		{"a flow that breaks with the fast path", killFastpath, func(s *stub) { s.progress.Broken = 1 }, "kill -9 fastpath: 2 broken flows"},
		{"a flow that breaks with the agent", killAgent, func(s *stub) { s.progress.Broken = 1 }, "kill -9 agent: 2 broken flows"},
		{"a flow that breaks in a flood", flood, func(s *stub) { s.progress.Broken, s.progress.First = 1, "reset" }, "1 of 1 flows broke"},
		{"a connection that fails in a flood", flood, func(s *stub) { s.burst = failing }, "1 of 101 new connections failed"},
		{"new connections that need the agent", killAgent, func(s *stub) { s.burst = failing }, "without the agent, 1 of 101 new connections failed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newStub()
			c.spoil(s)
			saw, err := c.play(t.Context(), &scene{Stage: s, family: 4})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("saw %q, error %v; want one with %q", saw, err, c.want)
			}
		})
	}
}

// A killed process is started again, and nothing else is killed.
func TestKillStartsAgain(t *testing.T) {
	s := newStub()
	if _, err := killFastpath(t.Context(), &scene{Stage: s, family: 6}); err != nil {
		t.Fatal(err)
	}
	if len(s.killed) != 1 || len(s.started) != 1 || s.killed[0] != Fastpath || s.started[0] != Fastpath {
		t.Errorf("killed %v, started %v", s.killed, s.started)
	}
}

// An act that changed the endpoints puts them back, also when it fails.
func TestEndpointsArePutBack(t *testing.T) {
	s := newStub()
	l := playOne(t.Context(), s, act{name: "x", play: func(ctx context.Context, sc *scene) (string, error) {
		sc.setWeb(ctx, nil)
		return "", errors.New("failed")
	}}, 4, "")
	if l.Passed() || s.changes != 2 || len(s.used) != 3 {
		t.Errorf("line %+v, %d changes, used now %v", l, s.changes, s.used)
	}
}

// The time line of the scaling act: one endpoint from second 1 (in use at 1.1), none from
// second 2, two from second 3, the end at second 4.
func TestScaleJudgesEachAttempt(t *testing.T) {
	begin := time.Now()
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	steps := []step{
		{1, Programmed{at(1), at(1.1)}, at(2)},
		{0, Programmed{at(2), at(2.1)}, at(5)},
		{2, Programmed{at(5), at(5.1)}, at(6)},
	}
	cases := []struct {
		name    string
		start   float64
		took    time.Duration
		outcome traffic.Outcome
		server  string
		want    string // in the error; empty: accepted
	}{
		{"before any change, answered by anybody", 0.5, 1e6, traffic.OK, "web-3", ""},
		{"before any change, refused", 0.5, 1e6, traffic.Refused, "", "failed: refused"},
		{"with one endpoint, answered by it", 1.5, 1e6, traffic.OK, "web-1", ""},
		{"with one endpoint, answered by one that is gone", 1.5, 1e6, traffic.OK, "web-2", "not one of them"},
		{"while one endpoint is being programmed, answered by one that goes", 1.05, 1e6, traffic.OK, "web-2", ""},
		{"with none, refused", 2.5, 1e6, traffic.Refused, "", ""},
		{"with none, refused too late", 2.5, 1.2e9, traffic.Refused, "", "refused only after 1200 ms"},
		{"with none, answered", 2.5, 1e6, traffic.OK, "web-1", "while there was no endpoint"},
		{"with none, no answer at all", 2.5, 1e6, traffic.Timeout, "", "failed: timeout"},
		{"while none is being programmed, answered", 2.05, 1e6, traffic.OK, "web-1", ""},
		{"while none is being programmed, refused", 2.05, 1e6, traffic.Refused, "", ""},
		{"while two are being programmed, still refused", 5.05, 1e6, traffic.Refused, "", ""},
		{"with two, refused", 5.5, 1e6, traffic.Refused, "", "failed: refused"},
		{"with two, answered by the second", 5.5, 1e6, traffic.OK, "web-2", ""},
		{"with two, answered by a third", 5.5, 1e6, traffic.OK, "web-3", "not one of them"},
		{"with two, reset", 5.5, 1e6, traffic.Reset, "", "failed: reset"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var tally scaleTally
			err := tally.judge(steps, newStub().Web(), traffic.Answer{Start: at(c.start), Took: c.took, Outcome: c.outcome, Server: c.server})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// The act fails when clients saw no refusal at all: then it proved nothing.
func TestScaleMustSeeARefusal(t *testing.T) {
	s := newStub()
	s.attempts = func() []traffic.Answer {
		return []traffic.Answer{{Outcome: traffic.OK, Server: "web-1", Start: time.Now().Add(-time.Hour)}}
	}
	if saw, err := scale(t.Context(), &scene{Stage: s, family: 4}); err == nil || !strings.Contains(err.Error(), "saw nothing") {
		t.Errorf("saw %q, error %v", saw, err)
	}
}

// The program is played over both families, in order, and its sum is right.
func TestPlay(t *testing.T) {
	s := newStub()
	s.attempts = func() []traffic.Answer { return nil } // the scaling act fails, twice
	var lines []Line
	tally := Play(t.Context(), s, func(l Line) { lines = append(lines, l) })
	if tally.String() != "12 passed, 2 failed" || len(lines) != 14 {
		t.Errorf("%s in %d lines", tally, len(lines))
	}
	if lines[0].FamilyName() != "both" || lines[1].FamilyName() != "IPv4" || lines[2].FamilyName() != "IPv6" || lines[1].Act != lines[2].Act {
		t.Errorf("order: %+v", lines[:3])
	}
}

// Without a stage that gets ready, nothing else is played, and nothing counts as passed.
func TestPlayWithoutStage(t *testing.T) {
	s := newStub()
	s.notReady = errors.New("no snapshot")
	if tally := Play(t.Context(), s, func(Line) {}); tally.Passed != 0 || tally.Failed != 14 || s.changes > 0 || len(s.killed) > 0 {
		t.Errorf("%s, %d changes, killed %v", tally, s.changes, s.killed)
	}
}

// Where web does not answer over one family, the other family is played all the same.
func TestPlayWithOneFamily(t *testing.T) {
	s := newStub()
	s.attempts = func() []traffic.Answer { return nil }
	s.answer = traffic.Answer{Outcome: traffic.Timeout}
	unplayed := 0
	tally := Play(t.Context(), s, func(l Line) {
		if l.Act == "one request" && l.Family == 4 {
			s.answer = traffic.Answer{Outcome: traffic.OK}
		}
		if l.Err != nil && strings.Contains(l.Err.Error(), "not played") {
			unplayed++
			if l.Family != 4 {
				t.Errorf("not played: %+v", l)
			}
		}
	})
	if unplayed != 5 || tally.Passed != 7 {
		t.Errorf("%s, %d not played", tally, unplayed)
	}
}

// An interrupted program fails honestly.
func TestPlayInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStub()
	tally := Play(ctx, s, func(l Line) {
		if l.Act == "even shares" {
			cancel()
		}
	})
	if tally.Failed == 0 || tally.Passed+tally.Failed != 14 {
		t.Errorf("%s", tally)
	}
}

// χ² and its bound agree with the tables: 18.42 for two degrees of freedom at 1e-4, and
// 33.72 for nine at 1e-4.
func TestChiSquare(t *testing.T) {
	if got := chiSquare([]int{1000, 1000, 1000}); got != 0 {
		t.Errorf("even counts: %v", got)
	}
	if got := chiSquare([]int{1010, 990, 1000}); got != 0.2 {
		t.Errorf("hand-computed: %v, want 0.2", got)
	}
	for freedom, want := range map[int]float64{2: 18.42, 9: 33.72} {
		if got := chiBound(freedom); got < 0.95*want || got > 1.06*want {
			t.Errorf("%d degrees: %v, want about %v", freedom, got, want)
		}
	}
}

// with changes only those that are named.
func TestWith(t *testing.T) {
	web := newStub().Web()
	got := with(web, manifests.Draining, "web-2")
	if got[0].State != manifests.Ready || got[1].State != manifests.Draining || web[1].State != manifests.Ready {
		t.Errorf("%+v, before %+v", got, web)
	}
}
