package usage

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

// TestParse: flags are taken with one hyphen and with two, and spoken of with two.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--rounds", "2", "-quick"}, ""},
		{[]string{"-bogus"}, "flag provided but not defined: --bogus"},
		{[]string{"--rounds"}, "flag needs an argument: --rounds"},
		{[]string{"-rounds", `a" for flag -b`}, `invalid value "a\" for flag -b" for flag --rounds: parse error`},
		{[]string{"-quick=perhaps"}, `invalid boolean value "perhaps" for --quick: parse error`},
	} {
		f := flag.NewFlagSet("laced", flag.ContinueOnError)
		f.Int("rounds", 1, "")
		f.Bool("quick", false, "")
		said := ""
		if err := Parse(f, c.args); err != nil {
			said = err.Error()
		}
		if said != c.want {
			t.Errorf("%q: %q, want %q", c.args, said, c.want)
		}
	}
	if err := Parse(flag.NewFlagSet("laced", flag.ContinueOnError), []string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// TestOperands: a program that takes something behind its flags says so.
func TestOperands(t *testing.T) {
	var b strings.Builder
	Write(&b, flag.NewFlagSet("laced", flag.ContinueOnError), "does things", "file...")
	if !strings.Contains(b.String(), "\nUsage: laced [flags] file...\n") {
		t.Error(b.String())
	}
}

func TestWrite(t *testing.T) {
	f := flag.NewFlagSet("laced", flag.ContinueOnError)
	f.String("bpffs", "/sys/fs/bpf", "`directory` to pin in")
	f.Bool("cleanup", false, "remove everything, and end")
	f.String("node-name", "", "`name` of the node")
	var b strings.Builder
	Write(&b, f, "does things")
	want := `laced does things.

Usage: laced [flags]

Flags:
  --bpffs directory
        directory to pin in (default /sys/fs/bpf)
  --cleanup
        remove everything, and end
  --node-name name
        name of the node
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", &b, want)
	}
}
