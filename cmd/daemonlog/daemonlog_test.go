package daemonlog

import (
	"flag"
	"strings"
	"testing"
	"unicode"
)

// given is what a command line says of the log.
func given(t *testing.T, args ...string) *Options {
	t.Helper()
	o, f := new(Options), flag.NewFlagSet("daemon", flag.ContinueOnError)
	o.Flags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestNamesReachNoTerminal: a device may be called what a terminal obeys; a line of the log
// shows it, and stays one line.
func TestNamesReachNoTerminal(t *testing.T) {
	const name = "ev\x1b[2J\xff\nforged"
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		given(t, "--log-format", format).Log(&out).Warn("MTU of "+name, "device", name)
		line, ended := strings.CutSuffix(out.String(), "\n")
		if !ended || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}

// TestTheLogIsAsTheFlagsSay: its format, which for programs is JSON, and the least level of its
// lines.
func TestTheLogIsAsTheFlagsSay(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // how the only line begins; empty: there is none
	}{
		{nil, `{"time"`},
		{[]string{"--log-format", "auto"}, `{"time"`},
		{[]string{"--log-format", "json"}, `{"time"`},
		{[]string{"--log-format", "text"}, `time=`},
		{[]string{"--log-level", "WARN"}, ""},
	} {
		var out strings.Builder
		o := given(t, c.args...)
		if err := o.Judge(); err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
		o.Log(&out).Info("serving")
		if got := out.String(); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q: the log is %q, want it to begin with %q", c.args, got, c.want)
		}
	}
	if err := given(t, "--log-format", "xml").Judge(); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("xml: %v", err)
	}
}
