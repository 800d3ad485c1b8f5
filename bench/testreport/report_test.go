package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func read(t *testing.T, lines string) (*Report, string) {
	t.Helper()
	r := newReport()
	var out bytes.Buffer
	if err := r.Read(t.Context(), strings.NewReader(lines), &out); err != nil {
		t.Fatal(err)
	}
	r.Close(&out)
	return r, out.String()
}

func TestReport(t *testing.T) {
	tests := []struct {
		name, events, last string
		failed             bool
		contains           string
	}{
		{
			name: "a test with sub-tests counts as its sub-tests",
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/x"}
{"Action":"pass","Package":"p","Test":"A/x"}
{"Action":"run","Package":"p","Test":"A/y"}
{"Action":"pass","Package":"p","Test":"A/y"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Elapsed":0.1}`,
			last: "2 passed, 0 failed, 0 skipped",
		},
		{
			name: "a failing sub-test fails once and its output is shown",
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/x"}
{"Action":"output","Package":"p","Test":"A/x","Output":"x_test.go:7: wanted 1, got 2\n"}
{"Action":"fail","Package":"p","Test":"A/x"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Elapsed":0.1}`,
			last: "0 passed, 1 failed, 0 skipped", failed: true, contains: "wanted 1, got 2",
		},
		{
			name: "what failed is named as soon as its package ends, a parent of what failed is not",
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/x"}
{"Action":"fail","Package":"p","Test":"A/x"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Elapsed":0.1}
{"Action":"run","Package":"q","Test":"B"}
{"Action":"pass","Package":"q","Test":"B"}
{"Action":"pass","Package":"q","Elapsed":0.1}`,
			last: "1 passed, 1 failed, 0 skipped", failed: true, contains: "1 failed  0.1s\n   failed: A/x\n q ",
		},
		{
			name: "a skip is counted with its cause",
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:3: missing CAP_BPF\n"}
{"Action":"output","Package":"p","Test":"A","Output":"--- SKIP: A (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Elapsed":0.1}`,
			last: "1 passed, 0 failed, 1 skipped", contains: "skipped 1: missing CAP_BPF",
		},
		{
			name: "what a package leaves out is listed by reason and fails nothing",
			events: `{"Action":"output","Package":"p","Output":"left out: TestA: no kernel has it: yet\n"}
{"Action":"output","Package":"p","Output":"left out: TestB/*/a part: no kernel has it: yet\n"}
{"Action":"run","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Elapsed":0.1}`,
			last: "1 passed, 0 failed, 0 skipped", contains: " left out, no kernel has it: yet:\n   TestA\n   TestB/*/a part\n",
		},
		{
			name: "a package that does not build is a failure",
			events: `{"Action":"build-output","ImportPath":"p","Output":"p.go:1: undefined: x\n"}
{"Action":"build-fail","ImportPath":"p"}
{"Action":"fail","Package":"p","Elapsed":0}`,
			last: "0 passed, 1 failed, 0 skipped", failed: true, contains: "undefined: x",
		},
		{
			name:   "nothing run is a failure",
			events: `{"Action":"skip","Package":"p"}`,
			last:   "0 passed, 0 failed, 0 skipped", failed: true,
		},
		{
			name: "a package that dies after its tests passed is a failure",
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Elapsed":0.1}`,
			last: "1 passed, 1 failed, 0 skipped", failed: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, out := read(t, tt.events)
			if r.Failed() != tt.failed {
				t.Errorf("failed = %v, want %v", r.Failed(), tt.failed)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if got := lines[len(lines)-1]; got != tt.last {
				t.Errorf("last line %q, want %q", got, tt.last)
			}
			if !strings.Contains(out, tt.contains) {
				t.Errorf("output lacks %q:\n%s", tt.contains, out)
			}
		})
	}
}

// What a complete run skips fails it, whatever the cause.
func TestCompleteRunForbidsSkips(t *testing.T) {
	const events = `{"Action":"run","Package":"p","Test":"A"}
{"Action":"skip","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Elapsed":0.1}`
	for _, complete := range []bool{false, true} {
		r := newReport()
		r.complete = complete
		if err := r.Read(t.Context(), strings.NewReader(events), &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		if r.Failed() != complete {
			t.Errorf("complete %v: failed = %v", complete, r.Failed())
		}
	}
}

func TestFuzzNames(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a_test.go", "package a\n\nfunc FuzzOne(f *testing.F) {}\n\nfunc TestTwo(t *testing.T) {}\n")
	write(t, dir+"/b.go", "package a\n\nfunc FuzzNot(f *testing.F) {}\n")
	got, err := fuzzNames(dir)
	if err != nil || len(got) != 1 || got[0] != "FuzzOne" {
		t.Errorf("fuzzNames = %v, %v; want [FuzzOne]", got, err)
	}
}

func TestInputs(t *testing.T) {
	for line, want := range map[string]uint64{
		"fuzz: elapsed: 3s, execs: 325017 (108336/sec), new interesting: 11 (total: 202)\n": 325017,
		"fuzz: elapsed: 0s, gathering baseline coverage: 0/192 completed\n":                 0,
		"execs: 7 of something else\n":                                                      0,
	} {
		if got, ok := inputs(line); got != want || ok != (want > 0) {
			t.Errorf("inputs(%q) = %d, %v; want %d", line, got, ok, want)
		}
	}
	r := newReport()
	for _, n := range []string{"10", "25"} {
		r.add(event{Action: "output", Output: "fuzz: elapsed: 1s, execs: " + n + " (5/sec)"}, io.Discard)
	}
	if got := r.endTarget(); got != 25 || r.allInputs != 25 || r.endTarget() != 0 {
		t.Errorf("%d inputs of the target, %d of all; want the last progress, 25", got, r.allInputs)
	}
}

func TestForgive(t *testing.T) {
	for said, want := range map[string]int{
		"    context deadline exceeded\n": 0,
		"    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzOne/1\n": 1,
		"    one_test.go:3: wrong\n": 1,
	} {
		r, k := newReport(), key{"p", "FuzzOne"}
		r.add(event{Action: "run", Package: "p", Test: "FuzzOne"}, io.Discard)
		r.add(event{Action: "output", Package: "p", Test: "FuzzOne", Output: said}, io.Discard)
		r.add(event{Action: "fail", Package: "p", Test: "FuzzOne"}, io.Discard)
		if r.forgive(k); r.failed != want || len(r.failing) != want {
			t.Errorf("%q: %d failed, want %d", said, r.failed, want)
		}
	}
}
