package commandline

import (
	"context"
	"flag"
	"io"
	"strings"
	"testing"
)

// Daemon is a process of a node that pages tell people to start.
type Daemon struct {
	Root  string // of the project
	Name  string // as pages and help have it
	Least int    // how many command lines pages have, at least
	Flag  string // one of its flags, as help has it
	Flags func() *flag.FlagSet
	Parse func(args []string) error // refuses what makes no sense, too
	Run   func(ctx context.Context, args []string, out, errs io.Writer) int
}

// HoldPages holds what pages tell people to type to the flags that there are, with values that
// they take and two hyphens.
func (d *Daemon) HoldPages(t *testing.T) {
	lines, err := Of(d.Root, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < d.Least {
		t.Errorf("only %d command lines were found", len(lines))
	}
	for _, l := range lines {
		if err := d.accepts(l); err != nil {
			t.Errorf("%s: %s: %v", l.Where, l.Text, err)
		}
		if f := l.Short(); f != "" {
			t.Errorf("%s: %s: %s has one hyphen", l.Where, l.Text, f)
		}
	}
	for _, words := range [][]string{{"--no-such-flag"}, {"run"}, {"--log-level", "loud"}} {
		if d.accepts(Line{Words: words}) == nil {
			t.Errorf("%q is accepted", words)
		}
	}
}

// accepts parses a line. One that is a part of a sentence may end with a flag without its
// value, and leave out what is required.
func (d *Daemon) accepts(l Line) error {
	if !l.Mention && !l.Elided() {
		return d.Parse(l.Words)
	}
	words := l.Words
	f := d.Flags()
	f.SetOutput(io.Discard)
	if n := len(words); n > 0 && f.Lookup(strings.TrimPrefix(words[n-1], "--")) != nil {
		words = words[:n-1]
	}
	return f.Parse(words)
}

// HoldHelp holds help that was asked for to be output, with flags as the pages write them.
func (d *Daemon) HoldHelp(t *testing.T) {
	var out, errs strings.Builder
	if code := d.Run(t.Context(), []string{"--help"}, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("exit code %d, message %q", code, &errs)
	}
	for _, part := range []string{"Usage: " + d.Name + " [flags]\n", "\n  " + d.Flag + " "} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("help has no %q:\n%s", part, &out)
		}
	}
}
