// Package usage is what the commands with flags of package flag have in common: their help,
// and how they speak of their flags.
//
// It owns how flags look there: with two hyphens, as the pages name them. One hyphen is taken
// too. It knows no flag.
package usage

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Parse reads a command line. It prints nothing: errors are the caller's to tell, and
// flag.ErrHelp is its wish for Write.
func Parse(f *flag.FlagSet, args []string) error {
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	err := f.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return errors.New(hyphens(err.Error()))
}

// named is how package flag begins a message, up to the name of the flag.
var named = regexp.MustCompile(`^(flag provided but not defined: |flag needs an argument: |invalid (?:boolean )?value "(?:[^"\\]|\\.)*" for (?:flag )?)-([^-])`)

// hyphens spells the flag of a message with two.
func hyphens(message string) string { return named.ReplaceAllString(message, "${1}--${2}") }

// Write writes what a program does, how it is called, and its flags with their defaults.
// Operands are what may follow the flags.
func Write(w io.Writer, f *flag.FlagSet, does string, operands ...string) {
	call := strings.Join(append([]string{f.Name(), "[flags]"}, operands...), " ")
	fmt.Fprintf(w, "%s %s.\n\nUsage: %s\n\nFlags:\n", f.Name(), does, call)
	f.VisitAll(func(x *flag.Flag) {
		value, text := flag.UnquoteUsage(x)
		head := "  --" + x.Name
		if value != "" {
			head += " " + value
		}
		fmt.Fprintf(w, "%s\n        %s", head, text)
		if d := x.DefValue; d != "" && d != "0" && d != "false" {
			fmt.Fprintf(w, " (default %s)", d)
		}
		fmt.Fprintln(w)
	})
}
