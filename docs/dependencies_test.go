package docs_test

import (
	"os"
	"strings"
	"testing"
)

// TestDependencies: every direct dependency has a row in docs/reference/dependencies.md.
func TestDependencies(t *testing.T) {
	b, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page := rows(t, "reference/dependencies.md")
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		name, _, ok := strings.Cut(line, " v")
		if !ok || strings.HasPrefix(name, "require") || strings.HasSuffix(line, "// indirect") {
			continue
		}
		if _, ok := page[name]; !ok {
			t.Errorf("%s is a direct dependency without a row in docs/reference/dependencies.md", name)
		}
		delete(page, name)
	}
	for name := range page {
		t.Errorf("docs/reference/dependencies.md has a row for %s, which is no direct dependency", name)
	}
}
