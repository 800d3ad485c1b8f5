package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
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
