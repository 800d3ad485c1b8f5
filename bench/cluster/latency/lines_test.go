package main

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"lace-cni.io/lace/docs/commandline"
)

// TestCommandLinesOfPages: what pages tell people to type, to the program and to make, has
// the flags that there are, with values that they take and two hyphens.
func TestCommandLinesOfPages(t *testing.T) {
	lines, err := commandline.Of("../../..", "bin/lace-latency")
	if err != nil {
		t.Fatal(err)
	}
	given, err := commandline.Given("../../..", "LATENCY")
	if err != nil {
		t.Fatal(err)
	}
	if len(given) == 0 {
		t.Error("no page gives LATENCY")
	}
	for _, l := range append(lines, given...) {
		if _, err := parse(l.Words); err != nil && !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %s: %v", l.Where, l.Text, err)
		}
		if f := l.Short(); f != "" {
			t.Errorf("%s: %s: %s has one hyphen", l.Where, l.Text, f)
		}
	}
}

// TestThePageSpellsFlagsWithTwoHyphens: those that stand alone, too; and none that there is
// not.
func TestThePageSpellsFlagsWithTwoHyphens(t *testing.T) {
	const page = "../../../docs/reference/latency.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(--?)([a-z-]+)").FindAllStringSubmatch(string(b), -1)
	if len(named) == 0 {
		t.Fatal("the page names no flag")
	}
	f := flags(new(options))
	for _, m := range named {
		if m[1] != "--" || f.Lookup(m[2]) == nil {
			t.Errorf("%s names the flag %s%s", page, m[1], m[2])
		}
	}
}

// TestHelpIsOutput: help that was asked for, with flags as the pages write them; a mistake
// is told where help is.
func TestHelpIsOutput(t *testing.T) {
	for _, arg := range []string{"--help", "-help", "-h"} {
		var out, errs strings.Builder
		if code := run(t.Context(), []string{arg}, &out, &errs); code != exitDone || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, message %q", arg, code, &errs)
		}
		for _, part := range []string{"Usage: lace-latency [flags]\n", "\n  --json file\n"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: help has no %q:\n%s", arg, part, &out)
			}
		}
		if regexp.MustCompile(`(?m)(^|[ (])-[a-z]{2}`).MatchString(out.String()) {
			t.Errorf("%s: a flag has one hyphen:\n%s", arg, &out)
		}
	}
	var out, errs strings.Builder
	want := "lace-latency: flag provided but not defined: --bogus\nTry: lace-latency --help\n"
	if code := run(t.Context(), []string{"-bogus"}, &out, &errs); code != exitUsage || errs.String() != want {
		t.Errorf("exit code %d, message %q, want %q", code, &errs, want)
	}
}
