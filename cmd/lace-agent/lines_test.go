package main

import (
	"io"
	"strings"
	"testing"

	"lace-cni.io/lace/docs/commandline"
)

// TestCommandLinesOfPages: what pages tell people to type has the flags that there are, with
// values that they take.
func TestCommandLinesOfPages(t *testing.T) {
	lines, err := commandline.Of("../..", "lace-agent")
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 10 {
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
	for _, words := range [][]string{{"--no-such-flag"}, {"run"}, {"--log-level", "loud"}} {
		if accepts(commandline.Line{Words: words}) == nil {
			t.Errorf("%q is accepted", words)
		}
	}
}

// accepts parses a line. One that is a part of a sentence may end with a flag without its
// value, and leave out what is required.
func accepts(l commandline.Line) error {
	if !l.Mention && !l.Elided() {
		_, err := parse(l.Words, io.Discard)
		return err
	}
	words := l.Words
	f := flags(new(options))
	f.SetOutput(io.Discard)
	if n := len(words); n > 0 && f.Lookup(strings.TrimPrefix(words[n-1], "--")) != nil {
		words = words[:n-1]
	}
	return f.Parse(words)
}

// Help that was asked for is output, with flags as the pages write them.
func TestHelpIsOutput(t *testing.T) {
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"--help"}, &out, &errs); code != exitDone || errs.Len() > 0 {
		t.Errorf("exit code %d, message %q", code, &errs)
	}
	for _, part := range []string{"Usage: lace-agent [flags]\n", "\n  --service-cidrs "} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("help has no %q:\n%s", part, &out)
		}
	}
}
