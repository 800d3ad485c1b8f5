package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/reason"
)

// rows returns the first two cells of every table row whose first cell is code.
func rows(t *testing.T, path string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|")
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		if _, twice := out[m[1]]; twice {
			t.Errorf("%s: %s has two rows", path, m[1])
		}
		out[m[1]] = strings.TrimSpace(m[2])
	}
	return out
}

func TestReasonsPage(t *testing.T) {
	page := rows(t, "reference/reasons.md")
	for r := reason.None + 1; r < reason.Count; r++ {
		class, ok := page[r.String()]
		if !ok {
			t.Errorf("reason %s has no row in docs/reference/reasons.md", r)
			continue
		}
		if class != r.Class().String() {
			t.Errorf("reason %s: the page says %q, the code %q", r, class, r.Class())
		}
		delete(page, r.String())
	}
	for name := range page {
		t.Errorf("docs/reference/reasons.md has a row for %s, which is no reason", name)
	}
}

func TestReasonsHeader(t *testing.T) {
	b, err := os.ReadFile("../xdp/bpf/reason.h")
	if err != nil {
		t.Fatal(err)
	}
	for r := reason.None; r < reason.Count; r++ {
		word := "REASON_" + strings.ToUpper(strings.ReplaceAll(r.String(), "-", "_"))
		if !regexp.MustCompile(fmt.Sprintf(`\b%s\s*=\s*%d\b`, word, r)).Match(b) {
			t.Errorf("xdp/bpf/reason.h lacks %s = %d; run make generate", word, r)
		}
	}
}

// TestReasonsHaveCases: every reason that the pipeline can give is the expectation of a
// packet case.
func TestReasonsHaveCases(t *testing.T) {
	cases := sources(t, "../fastpath/pipeline", "_test.go") + sources(t, "../fastpath/fragment", "_test.go") + sources(t, "../xdp", "_test.go") + sources(t, "../fastpath/worker", "_test.go")
	names := identifiers(t)
	for r := reason.None + 1; r < reason.Count; r++ {
		if !strings.Contains(cases, "reason."+names[r]) {
			t.Errorf("no packet case expects reason.%s (%s)", names[r], r)
		}
	}
}

func sources(t *testing.T, dir, suffix string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		b, err := os.ReadFile(dir + "/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// identifiers maps each reason to its Go name, read from the table that names it.
func identifiers(t *testing.T) map[reason.Reason]string {
	t.Helper()
	out := map[reason.Reason]string{}
	row := regexp.MustCompile(`(?m)^\s+(\w+):\s+\{"([a-z-]+)", Class`)
	for _, m := range row.FindAllStringSubmatch(sources(t, "../fastpath/reason", "reason.go"), -1) {
		if r, ok := reason.Parse(m[2]); ok {
			out[r] = m[1]
		}
	}
	if len(out) != int(reason.Count) {
		t.Fatalf("found %d of %d reasons in the source", len(out), reason.Count)
	}
	return out
}
