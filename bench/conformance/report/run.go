package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"
)

// State of a test in a run.
type State string

// States. A test is excluded by a line of the list, or by itself; missing when it was
// neither run nor excluded.
const (
	Passed   State = "passed"
	Failed   State = "failed"
	Excluded State = "excluded"
	Missing  State = "missing"
)

// Run is what is kept of a run.
type Run struct {
	Kubernetes string
	Carrier    string // lace, or kube-proxy
	Revision   string // of Lace
	Nodes      int
	Date       string // of the start, UTC
	Minutes    float64
	Note       string `json:",omitempty"` // how it came about, when not by one run
	Tests      []Test
}

// Test of a run.
type Test struct {
	Name    string
	State   State
	Seconds float64 `json:",omitempty"`
	Why     string  `json:",omitempty"`
}

// count of tests in a state.
func (r *Run) count(s State) (n int) {
	for i := range r.Tests {
		if r.Tests[i].State == s {
			n++
		}
	}
	return n
}

// ok when nothing failed, nothing is missing, and something was run.
func (r *Run) ok() bool { return r.count(Passed) > 0 && r.count(Failed)+r.count(Missing) == 0 }

// judge takes the tests of suites whose names match focus. A test that is in several is
// judged by the last that ran it.
func judge(suites []*suite, focus *regexp.Regexp, out []exclusion) *Run {
	r := &Run{Date: suites[0].StartTime.UTC().Format(time.DateOnly)}
	tests := map[string]Test{}
	for _, s := range suites {
		r.Minutes += s.RunTime.Minutes()
		for i := range s.SpecReports {
			sp := &s.SpecReports[i]
			if sp.LeafNodeType != "It" || !focus.MatchString(sp.name()) {
				continue
			}
			t := verdict(sp, out)
			if _, known := tests[t.Name]; !known || t.State != Missing {
				tests[t.Name] = t
			}
		}
	}
	for _, t := range tests {
		r.Tests = append(r.Tests, t)
	}
	slices.SortFunc(r.Tests, func(a, b Test) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

func verdict(s *spec, out []exclusion) Test {
	t := Test{Name: s.name(), Seconds: float64(s.RunTime.Milliseconds()) / 1000}
	switch s.State {
	case "passed":
		t.State = Passed
	case "skipped", "pending":
		t.Seconds = 0
		t.State, t.Why = Excluded, reason(out, t.Name)
		if t.Why == "" && s.why() != "" {
			t.Why = "skips itself: " + s.why()
		}
		if t.Why == "" {
			t.State, t.Why = Missing, "was not run, and no line of the list says why"
		}
	default: // failed, timedout, panicked, interrupted, aborted
		t.State, t.Why = Failed, s.why()
		if s.State != "failed" {
			t.Why = s.State + ": " + t.Why
		}
	}
	return t
}

func (r *Run) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func readRun(path string) (*Run, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Run)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s is no recorded run: %w", path, err)
	}
	return r, nil
}
