package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Pages that say which test holds them to what they say.
var heldByTests = []string{"explanation/what-fails.md", "how-to/upgrade.md", "how-to/replace-kube-proxy.md"}

// Every test that a page names is there.
func TestTestsThatPagesNameExist(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`")
	for _, page := range heldByTests {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := named.FindAllStringSubmatch(string(b), -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, m := range names {
			if !there[m[1]] {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
}
