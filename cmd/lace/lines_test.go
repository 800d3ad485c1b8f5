package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"lace-cni.io/lace/cmd/lace/simulated"
	"lace-cni.io/lace/docs/commandline"
)

// TestCommandLinesOfPages: what pages tell people to type is a command with flags that
// there are, and with those that it needs.
func TestCommandLinesOfPages(t *testing.T) {
	lines, err := commandline.Of("../..", "lace")
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 50 {
		t.Errorf("only %d command lines were found", len(lines))
	}
	for _, l := range lines {
		if err := accepts(l); err != nil {
			t.Errorf("%s: %s: %v", l.Where, l.Text, err)
		}
		if f := l.Short(); f != "" {
			t.Errorf("%s: %s: %s has one hyphen", l.Where, l.Text, f)
		}
	}
}

// A line that the commands do not take is found.
func TestWrongCommandLinesAreFound(t *testing.T) {
	for _, words := range [][]string{
		{"explain", "host", "172.30.0.11:30080/tcp"},
		{"explain", "--from", "shopper"},
		{"get", "flows", "--closed"},
		{"got"},
	} {
		if accepts(commandline.Line{Words: words}) == nil {
			t.Errorf("lace %s is accepted", strings.Join(words, " "))
		}
	}
}

// accepts parses a line without doing what it asks for.
func accepts(l commandline.Line) error {
	root := newRoot()
	root.InitDefaultVersionFlag()
	cmd, rest, err := root.Find(l.Words)
	if err != nil {
		return err
	}
	if n := len(rest); l.Mention && n > 0 && strings.HasPrefix(rest[n-1], "--") {
		if cmd.Flags().Lookup(rest[n-1][2:]) == nil && cmd.InheritedFlags().Lookup(rest[n-1][2:]) == nil {
			return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), rest[n-1])
		}
		rest = rest[:n-1]
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil || l.Mention {
		return err
	}
	return cmd.ValidateRequiredFlags()
}

// TestExamplesOfHelp runs every example in the help texts on the nodes of a simulated demo,
// for which they are written.
func TestExamplesOfHelp(t *testing.T) {
	dir := simulatedNode(t)
	n := 0
	each(newRoot(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			words, ok := commandline.Split(strings.TrimSpace(line), "lace")
			if !ok {
				t.Errorf("%s: the example %q is no command line of lace", cmd.CommandPath(), line)
				continue
			}
			n++
			var out, errs strings.Builder
			if code := run(t.Context(), append(words, "--state-dir", dir), &out, &errs); code != 0 {
				t.Errorf("%s: exit code %d: %s", strings.TrimSpace(line), code, errs.String())
			}
		}
	})
	if n < 2 {
		t.Errorf("%d examples were found", n)
	}
}

// each visits a command and those below it.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, below := range cmd.Commands() {
		each(below, visit)
	}
}

// simulatedNode starts the nodes of a demo in memory and returns the state directory.
func simulatedNode(t *testing.T) string {
	t.Helper()
	t.Setenv("TMPDIR", "/tmp") // socket names are limited in length
	s, err := simulated.Start(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(s.Manifests())
}
