package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/screen"
)

// flagName finds the names in cobra's list of flags.
var flagName = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

// TestPage holds docs/reference/lace.md to the commands and flags that there are.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/lace.md")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllSubmatch(b, -1) {
		page[string(m[1])] = true
	}
	root := newRoot()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	want := map[string]bool{}
	collect(root, want)
	for word := range want {
		if !page[word] {
			t.Errorf("docs/reference/lace.md has no row for %s", word)
		}
	}
	for word := range page {
		if !want[word] {
			t.Errorf("docs/reference/lace.md has a row for %s, which does not exist", word)
		}
	}
}

// collect adds the command lines and flags of a command and of those below it.
func collect(cmd *cobra.Command, into map[string]bool) {
	if cmd.HasParent() {
		into[cmd.CommandPath()] = true
	}
	for _, m := range flagName.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
		if m[1] != "help" {
			into["--"+m[1]] = true
		}
	}
	for _, below := range cmd.Commands() {
		if below.Name() != "help" && below.Name() != "completion" {
			collect(below, into)
		}
	}
}

// TestColumns holds the page to the columns of every list: those of -o wide are in italics.
func TestColumns(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/lace.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(b), "\n## Columns\n")
	page, _, ended := strings.Cut(page, "\n## ")
	if !ended {
		t.Fatal("docs/reference/lace.md has no section Columns")
	}
	for title, wide := range titles() {
		if word := "`" + title + "`"; !strings.Contains(page, word) || wide && !strings.Contains(page, "*"+word+"*") {
			t.Errorf("docs/reference/lace.md does not say what the column %s is, or not that it is wide: %v", title, wide)
		}
	}
}

func titles() map[string]bool {
	all := map[string]bool{}
	addTitles(all, serviceColumns)
	addTitles(all, backendColumns)
	addTitles(all, flowColumns)
	addTitles(all, dropColumns)
	addTitles(all, laneColumns)
	addTitles(all, portColumns)
	addTitles(all, problemColumns)
	addTitles(all, factColumns)
	addTitles(all, stepColumns)
	addTitles(all, candidateColumns)
	addTitles(all, buildColumns)
	return all
}

// addTitles adds titles, each with whether it is shown by -o wide only in every list that has it.
func addTitles[T any](all map[string]bool, columns []screen.Column[T]) {
	for _, c := range columns {
		before, known := all[c.Title]
		all[c.Title] = c.Wide && (before || !known)
	}
}

// Help names the variable that changes the default, whatever it is set to.
func TestHelpOfTheStateDir(t *testing.T) {
	t.Setenv("LACE_STATE_DIR", "/tmp/elsewhere")
	for _, args := range [][]string{{"get", "--help"}, {"check", "--help"}, {"explain", "--help"}} {
		var out, errs strings.Builder
		if code := run(t.Context(), args, &out, &errs); code != 0 || !strings.Contains(out.String(), "$LACE_STATE_DIR, else /run/lace") || strings.Contains(out.String(), "elsewhere") {
			t.Errorf("%v: exit code %d:\n%s", args, code, &out)
		}
	}
}
