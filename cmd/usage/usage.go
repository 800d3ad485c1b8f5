// Package usage writes the help of the two daemons.
//
// It owns how flags look there: with two hyphens, as the pages name them. It never parses.
package usage

import (
	"flag"
	"fmt"
	"io"
)

// Write writes what a program does, how it is called, and its flags with their defaults.
func Write(w io.Writer, f *flag.FlagSet, does string) {
	fmt.Fprintf(w, "%s %s.\n\nUsage: %s [flags]\n\nFlags:\n", f.Name(), does, f.Name())
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
