package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var everything = regexp.MustCompile("")

// one spec of a suite, whose name is "[sig-network] Services NAME".
func one(name, state, message string) spec {
	s := spec{ContainerHierarchyTexts: []string{"[sig-network]", "Services"}, LeafNodeType: "It", LeafNodeText: name, State: state, RunTime: 1500 * time.Millisecond}
	s.Failure.Message = message
	return s
}

func TestEveryTestHasAVerdict(t *testing.T) {
	left := []exclusion{{regexp.MustCompile("sctp"), "no SCTP here"}}
	for _, c := range []struct {
		sentence string
		spec     spec
		want     Test
	}{
		{"passed", one("a", "passed", ""), Test{State: Passed, Seconds: 1.5}},
		{"failed, with the first line of its complaint", one("a", "failed", " no answer\nstack"), Test{State: Failed, Seconds: 1.5, Why: "no answer"}},
		{"ran out of time", one("a", "timedout", "waiting"), Test{State: Failed, Seconds: 1.5, Why: "timedout: waiting"}},
		{"was interrupted", one("a", "interrupted", "signal"), Test{State: Failed, Seconds: 1.5, Why: "interrupted: signal"}},
		{"a line of the list leaves it out", one("sctp", "skipped", ""), Test{State: Excluded, Why: "no SCTP here"}},
		{"a listed test that ran and failed has failed", one("sctp", "failed", "x"), Test{State: Failed, Seconds: 1.5, Why: "x"}},
		{"skips itself", one("a", "skipped", "needs 3 nodes"), Test{State: Excluded, Why: "skips itself: needs 3 nodes"}},
		{"nobody says why it was not run", one("a", "skipped", ""), Test{State: Missing, Why: "was not run, and no line of the list says why"}},
	} {
		c.want.Name = c.spec.name()
		if diff := cmp.Diff(c.want, verdict(&c.spec, left)); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", c.sentence, diff)
		}
	}
}

func TestALaterSuiteJudgesAgain(t *testing.T) {
	first := &suite{SpecReports: []spec{one("again", "failed", "x"), one("once", "passed", "")}}
	second := &suite{SpecReports: []spec{one("again", "passed", ""), one("once", "skipped", "")}}
	r := judge([]*suite{first, second}, everything, nil)
	if got, want := r.summary(), "2 passed, 0 failed, 0 missing, 0 excluded"; got != want || !r.ok() {
		t.Errorf("judged %q, ok %v; want %q", got, r.ok(), want)
	}
}

func TestOnlyTestsInFocusAreJudged(t *testing.T) {
	s := &suite{SpecReports: []spec{one("in", "passed", ""), one("out", "skipped", ""), {LeafNodeType: "BeforeSuite", State: "passed"}}}
	r := judge([]*suite{s}, regexp.MustCompile("Services in"), nil)
	if len(r.Tests) != 1 || !r.ok() {
		t.Errorf("judged %v, want the one in focus", r.Tests)
	}
}

func TestWhatIsNotOK(t *testing.T) {
	for _, c := range []struct {
		sentence string
		states   []State
		want     bool
	}{
		{"all passed", []State{Passed, Excluded}, true},
		{"one failed", []State{Passed, Failed}, false},
		{"one is missing", []State{Passed, Missing}, false},
		{"nothing was run", []State{Excluded}, false},
	} {
		r := &Run{}
		for _, s := range c.states {
			r.Tests = append(r.Tests, Test{State: s})
		}
		if r.ok() != c.want {
			t.Errorf("%s: ok %v, want %v", c.sentence, r.ok(), c.want)
		}
	}
}

func TestBadInputSaysWhere(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "input")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	exclusions := func(text string) error { _, err := readExclusions(file(text)); return err }
	report := func(text string) error { _, err := readSuite(file(text)); return err }
	kept := func(text string) error { _, err := readRun(file(text)); return err }
	document := func(text string) error { return insertFile(file(text), &Run{}) }
	for _, c := range []struct {
		sentence, text, want string
		read                 func(string) error
	}{
		{"an exclusion without a reason", "# why\n\nsctp\n", "input:3: no reason", exclusions},
		{"an exclusion with an empty reason", "sctp\t \n", "input:1: no reason", exclusions},
		{"an expression that is none", "(\twhy\n", "input:1: error parsing regexp", exclusions},
		{"a report that is none", "Ran 3 of 4", "no JSON report", report},
		{"a report of two suites", "[{},{}]", "2 suites", report},
		{"a run that is none", "[]", "no recorded run", kept},
		{"a document without marks", "# Page\n", "has no", document},
	} {
		if err := c.read(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.sentence, err, c.want)
		}
	}
	for _, args := range [][]string{{}, {"--bogus"}, {"--from", "run.json", "report.json"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

// The list of the project can be read, each line names tests that a run has, and every
// test that the recorded run left out by the list is one that the list still leaves out.
func TestTheListIsThatOfTheRecordedRun(t *testing.T) {
	left, err := readExclusions("../excluded.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := readRun("../../recorded/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, x := range r.Tests {
		why := reason(left, x.Name)
		used[why] = true
		if x.State == Excluded && !strings.HasPrefix(x.Why, "skips itself: ") && why != x.Why {
			t.Errorf("%s: recorded as excluded for %q, the list says %q", x.Name, x.Why, why)
		}
	}
	for _, e := range left {
		if !used[e.why] {
			t.Errorf("no test is left out by %q: %s", e.name, e.why)
		}
	}
}

// The page says what was recorded, and nobody has edited it since.
func TestThePageSaysWhatWasRecorded(t *testing.T) {
	const page, recorded = "../../../docs/reference/conformance.md", "../../recorded/conformance.json"
	r, err := readRun(recorded)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.markdown(&text)
	want, err := insert(have, []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("run make conformance-page (- as recorded, + in the page):\n%s", diff)
	}
}
