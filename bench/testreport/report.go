package main

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// event is one line of `go test -json` (cmd/test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type key struct{ pkg, test string }

// Report collects events and counts.
type Report struct {
	passed, failed, skipped int
	complete                bool   // the run is meant to be complete: a skip fails it
	stopped                 bool   // before everything had run
	inputs, allInputs       uint64 // inputs that the fuzz target in hand, and all of them, were run with

	output  map[key][]string
	counts  map[string]*[3]int // per package: passed, failed, skipped
	leaf    map[key]bool       // a test that has sub-tests is not counted itself
	causes  map[string]int
	leftOut leftOut
	failing []key
	running running
}

func newReport() *Report {
	return &Report{output: map[key][]string{}, counts: map[string]*[3]int{}, leaf: map[key]bool{}, causes: map[string]int{}, leftOut: leftOut{}, running: running{}}
}

func (r *Report) add(e event, w io.Writer) {
	if e.Package == "" {
		e.Package, _, _ = strings.Cut(e.ImportPath, " ")
	}
	k := key{e.Package, e.Test}
	r.running.read(k, e.Action)
	switch e.Action {
	case "build-output":
		r.output[key{e.Package, ""}] = append(r.output[key{e.Package, ""}], e.Output)
	case "output":
		r.output[k] = append(r.output[k], e.Output)
		if n, ok := inputs(e.Output); ok {
			r.inputs = n
		}
		r.leftOut.read(e.Output)
	case "run":
		r.leaf[k] = true
		if i := strings.LastIndexByte(e.Test, '/'); i > 0 {
			r.leaf[key{e.Package, e.Test[:i]}] = false
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.closePackage(e, w)
			return
		}
		r.close(k, e.Action)
	}
}

func (r *Report) close(k key, action string) {
	c := r.counts[k.pkg]
	if c == nil {
		c = new([3]int)
		r.counts[k.pkg] = c
	}
	switch {
	case action == "fail":
		// A parent that fails because of its children is shown but counted once, by them.
		r.failing = append(r.failing, k)
		if r.leaf[k] || !r.childFailed(k) {
			c[1]++
			r.failed++
		}
	case !r.leaf[k]:
	case action == "pass":
		c[0]++
		r.passed++
		delete(r.output, k)
	case action == "skip":
		c[2]++
		r.skipped++
		r.causes[skipCause(r.output[k])]++
	}
}

func (r *Report) childFailed(k key) bool {
	for _, f := range r.failing {
		if f.pkg == k.pkg && strings.HasPrefix(f.test, k.test+"/") {
			return true
		}
	}
	return false
}

func (r *Report) closePackage(e event, w io.Writer) {
	c := r.counts[e.Package]
	name := strings.TrimPrefix(e.Package, "lace-cni.io/lace/")
	switch {
	case c == nil && e.Action == "fail":
		// It did not build, or died outside any test.
		r.failed++
		r.failing = append(r.failing, key{e.Package, ""})
		fmt.Fprintf(w, " %-34s failed to build or run\n", name)
	case c == nil:
		// No tests in this package.
	default:
		if e.Action == "fail" && c[1] == 0 {
			r.failed++
			c[1]++
			r.failing = append(r.failing, key{e.Package, ""})
		}
		fmt.Fprintf(w, " %-34s %4d passed", name, c[0])
		if c[1] > 0 {
			fmt.Fprintf(w, ", %d failed", c[1])
		}
		if c[2] > 0 {
			fmt.Fprintf(w, ", %d skipped", c[2])
		}
		fmt.Fprintf(w, "  %.1fs\n", e.Elapsed)
		r.nameFailed(e.Package, w)
	}
}

// nameFailed names what failed in a package that has ended, at once: the output follows at
// the end of the run, which may be minutes away.
func (r *Report) nameFailed(pkg string, w io.Writer) {
	for _, k := range r.failing {
		switch {
		case k.pkg != pkg || r.childFailed(k):
		case k.test == "":
			fmt.Fprintf(w, "   failed: outside any test\n")
		default:
			fmt.Fprintf(w, "   failed: %s\n", k.test)
		}
	}
}

// inputs reads how many inputs a fuzz target has had from its progress, "fuzz: elapsed: 3s,
// execs: 325017 (108336/sec), ...".
func inputs(line string) (n uint64, ok bool) {
	_, rest, ok := strings.Cut(line, "fuzz: elapsed: ")
	if ok {
		_, rest, ok = strings.Cut(rest, "execs: ")
	}
	if !ok {
		return 0, false
	}
	word, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(word, 10, 64)
	return n, err == nil
}

// forgive takes back the failure of a fuzz target that found nothing: on a busy machine go
// test takes the end of the fuzzing time for one, "context deadline exceeded"
// (golang/go#56238). A target that finds something says where it has written that.
func (r *Report) forgive(k key) {
	said := strings.Join(r.output[k], "")
	at := slices.Index(r.failing, k)
	if at < 0 || strings.Contains(said, "Failing input") || !strings.Contains(said, "context deadline exceeded") {
		return
	}
	r.failing = slices.Delete(r.failing, at, at+1)
	r.failed--
	r.passed++
}

// endTarget adds up what one fuzz target has had.
func (r *Report) endTarget() (n uint64) {
	n, r.inputs = r.inputs, 0
	r.allInputs += n
	return n
}

// skipCause is the message of t.Skip without its file and line.
func skipCause(out []string) string {
	for i := len(out) - 1; i >= 0; i-- {
		s := strings.TrimSpace(out[i])
		if s == "" || strings.HasPrefix(s, "--- ") || strings.HasPrefix(s, "=== ") {
			continue
		}
		if _, msg, ok := strings.Cut(s, ".go:"); ok {
			if _, msg, ok = strings.Cut(msg, ": "); ok {
				return msg
			}
		}
		return s
	}
	return "no cause given"
}

// Failed reports whether anything failed, nothing ran at all, the run was stopped, or one
// that is meant to be complete left something out.
func (r *Report) Failed() bool {
	return r.stopped || r.failed > 0 || r.passed == 0 || r.complete && r.skipped > 0
}

// Close prints failures, skips by cause, what was left out by reason, and the counts.
func (r *Report) Close(w io.Writer) {
	for _, k := range r.failing {
		fmt.Fprintf(w, "\n--- failed: %s %s\n", strings.TrimPrefix(k.pkg, "lace-cni.io/lace/"), k.test)
		for _, l := range r.output[k] {
			fmt.Fprint(w, l)
		}
	}
	causes := make([]string, 0, len(r.causes))
	for c := range r.causes {
		causes = append(causes, c)
	}
	sort.Strings(causes)
	for _, c := range causes {
		fmt.Fprintf(w, "\n skipped %d: %s\n", r.causes[c], c)
	}
	r.leftOut.write(w)
	if r.complete && r.skipped > 0 {
		fmt.Fprintf(w, "\n LACE_REQUIRE_PRIVILEGED=1 forbids the skips above\n")
	}
	if r.stopped {
		fmt.Fprintf(w, "\n stopped; under way was: %s\n", r.running)
	}
	if r.allInputs > 0 {
		fmt.Fprintf(w, "\n%d inputs\n", r.allInputs)
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped%s\n", r.passed, r.failed, r.skipped, r.cut())
}

// cut is what the counts of a run that was stopped are followed by.
func (r *Report) cut() string {
	if r.stopped {
		return ", stopped before the end"
	}
	return ""
}
