package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestServicesPage: each line of the page of Services names tests that are there, by package,
// function and, in quotes, a sentence or a script of it.
func TestServicesPage(t *testing.T) {
	b, err := os.ReadFile("reference/services.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| ([^|]+) \\| (`[^|]+) \\|$")
	name := regexp.MustCompile("`([a-z0-9/]+) ((?:Test|Fuzz)\\w+)(?: \"([^\"`]+)\")?`")
	rows := row.FindAllStringSubmatch(string(b), -1)
	if len(rows) < 60 {
		t.Fatalf("%d lines found, the page has more", len(rows))
	}
	for _, r := range rows {
		named := name.FindAllStringSubmatch(r[2], -1)
		if len(named) != strings.Count(r[2], "`")/2 {
			t.Errorf("%q: %s is not a list of `package Test \"sentence\"`", r[1], r[2])
		}
		for _, n := range named {
			if err := hasTest(t, n[1], n[2], n[3]); err != "" {
				t.Errorf("%q: %s", r[1], err)
			}
		}
	}
}

var testSources = map[string]string{}

// hasTest says what is missing; empty: nothing.
func hasTest(t *testing.T, pkg, function, sentence string) string {
	t.Helper()
	if testSources[pkg] == "" {
		testSources[pkg] = sources(t, "../"+pkg, "_test.go")
	}
	if !strings.Contains(testSources[pkg], "func "+function+"(") {
		return pkg + " has no " + function
	}
	if sentence == "" || strings.Contains(testSources[pkg], `"`+sentence+`"`) {
		return ""
	}
	if script, ok := strings.CutSuffix(sentence, ".txtar"); ok {
		if _, err := os.Stat("../" + pkg + "/testdata/" + script + ".txtar"); err == nil {
			return ""
		}
	}
	return pkg + " has no case " + sentence
}
