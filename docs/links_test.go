package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(p, ".md") {
			out = append(out, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLinks follows every relative link of every page.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
	n := 0
	for _, p := range pages(t) {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			n++
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", p, m[1])
			}
		}
	}
	if n == 0 {
		t.Error("no links found: the test looks at nothing")
	}
}

// TestEveryPageIsReachable: each page under docs is listed in docs/README.md.
func TestEveryPageIsReachable(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range pages(t) {
		rel, here := strings.CutPrefix(filepath.ToSlash(p), "../docs/")
		if !here || rel == "README.md" {
			continue
		}
		n++
		if !strings.Contains(string(b), "("+rel+")") {
			t.Errorf("docs/README.md does not list %s", rel)
		}
	}
	if n == 0 {
		t.Error("no pages found: the test looks at nothing")
	}
}
