package commandline

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Program is one whose flags a variable of make adds to, and that has a page.
type Program struct {
	Root     string // of the project
	Name     string // as help has it
	Variable string // of make
	Page     string // below Root
	Flags    *flag.FlagSet
	Parse    func(args []string) error
	Run      func(args []string, out, errs io.Writer) int
	Wrong    int // exit code of a command line that makes no sense
}

// HoldPages holds what pages tell people to type, to the program and to make, to the flags
// that there are, with values that they take and two hyphens.
func (p *Program) HoldPages(t *testing.T) {
	lines, err := Of(p.Root, "bin/"+p.Name)
	if err != nil {
		t.Fatal(err)
	}
	given, err := Given(p.Root, p.Variable)
	if err != nil {
		t.Fatal(err)
	}
	if len(given) == 0 {
		t.Errorf("no page gives %s", p.Variable)
	}
	for _, l := range append(lines, given...) {
		if err := p.Parse(l.Words); err != nil && !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %s: %v", l.Where, l.Text, err)
		}
		if f := l.Short(); f != "" {
			t.Errorf("%s: %s: %s has one hyphen", l.Where, l.Text, f)
		}
	}
}

// HoldPage holds the flags that stand alone on the program's page to those that there are,
// and to two hyphens.
func (p *Program) HoldPage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(p.Root, p.Page))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(--?)([a-z-]+)").FindAllStringSubmatch(string(b), -1)
	if len(named) == 0 {
		t.Fatal("the page names no flag")
	}
	for _, m := range named {
		if m[1] != "--" || p.Flags.Lookup(m[2]) == nil {
			t.Errorf("%s names the flag %s%s", p.Page, m[1], m[2])
		}
	}
}

// HoldHelp holds help that was asked for to be output, with flags as the pages write them,
// and a mistake to be told with where help is.
func (p *Program) HoldHelp(t *testing.T) {
	for _, arg := range []string{"--help", "-help", "-h"} {
		var out, errs strings.Builder
		if code := p.Run([]string{arg}, &out, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, message %q", arg, code, &errs)
		}
		for _, part := range []string{"Usage: " + p.Name + " [flags]\n", "\n  --json file\n"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: help has no %q:\n%s", arg, part, &out)
			}
		}
		if regexp.MustCompile(`(?m)(^|[ (])-[a-z]{2}`).MatchString(out.String()) {
			t.Errorf("%s: a flag has one hyphen:\n%s", arg, &out)
		}
	}
	var out, errs strings.Builder
	want := p.Name + ": flag provided but not defined: --bogus\nTry: " + p.Name + " --help\n"
	if code := p.Run([]string{"-bogus"}, &out, &errs); code != p.Wrong || errs.String() != want {
		t.Errorf("exit code %d, message %q, want %q", code, &errs, want)
	}
}
