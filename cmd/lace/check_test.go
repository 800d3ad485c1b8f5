package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// The last line of check says what all the others come to.
func TestCheckEndsWithItsOutcome(t *testing.T) {
	problem := preflight.Finding{Verdict: preflight.Warn, Problem: &api.Problem{}}
	ok, warn, fail := preflight.Finding{Verdict: preflight.OK}, preflight.Finding{Verdict: preflight.Warn}, preflight.Finding{Verdict: preflight.Fail}
	for _, c := range []struct {
		findings []preflight.Finding
		want     string
	}{
		{[]preflight.Finding{ok, ok}, "Lace can run here."},
		{[]preflight.Finding{ok, warn, warn}, "Lace can run here. To know before: 2, marked warn."},
		{[]preflight.Finding{ok, fail}, "Lace cannot run here yet: 1 thing to mend."},
		{[]preflight.Finding{ok, problem}, "Lace can run here. The agent that runs here has 1 Problem."},
		{[]preflight.Finding{problem, warn, problem}, "Lace can run here. To know before: 1, marked warn. The agent that runs here has 2 Problems."},
		{[]preflight.Finding{fail, warn, fail, fail}, "Lace cannot run here yet: 3 things to mend. To know before: 1, marked warn."},
	} {
		if got := outcome(c.findings); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// check beside an agent shows each of its Problems in a line of its own, up to a bound, and all
// of them to programs. They change no exit code.
func TestCheckShowsTheProblemsOfAnAgent(t *testing.T) {
	none, _, _ := told(t, answers, "check")
	for _, c := range []struct {
		problems, lines int
		more            string
		outcome         string
	}{
		{0, 0, "", ""},
		{1, 1, "", "The agent that runs here has 1 Problem."},
		{mostProblems, mostProblems, "", "has 20 Problems."},
		{300, mostProblems, "and 280 more: lace get problems", "has 300 Problems."},
	} {
		t.Run(fmt.Sprint(c.problems), func(t *testing.T) {
			var list api.List[api.Problem]
			for i := range c.problems {
				list.Items = append(list.Items, api.Problem{Kind: "Service", Object: fmt.Sprintf("default/s%d", i), Field: "spec.clusterIP", Reason: "BadAddress", Message: "it is none; correct it"})
			}
			said := map[string]any{api.PathProblems: list}
			code, out, errs := told(t, said, "check")
			if code != none || errs != "" {
				t.Errorf("exit code %d, message %q; want %d, as without Problems", code, errs, none)
			}
			if n := strings.Count(out, "  Service default/s"); n != c.lines {
				t.Errorf("%d lines of Problems, want %d:\n%s", n, c.lines, out)
			}
			if (c.problems == 0) != regexp.MustCompile("(?m)  problems +none$").MatchString(out) || !strings.Contains(out, c.more) || !strings.Contains(out, c.outcome) {
				t.Errorf("want %q and %q, and the word none without Problems:\n%s", c.more, c.outcome, out)
			}
			if c.more == "" && strings.Contains(out, "lace get problems") {
				t.Errorf("more Problems are spoken of than there are:\n%s", out)
			}
			_, out, _ = told(t, said, "check", "-o", "json")
			var findings api.List[preflight.Finding]
			if err := json.Unmarshal([]byte(out), &findings); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, f := range findings.Items {
				if n < c.problems && f.Problem != nil && *f.Problem == list.Items[n] && f.Verdict == preflight.Warn {
					n++
				}
			}
			if n != c.problems {
				t.Errorf("programs get %d Problems, want %d", n, c.problems)
			}
		})
	}
}
