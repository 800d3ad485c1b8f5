package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// leftOut are tests that a package's own list leaves out of a run, by the reason that it
// gives: unlike a skip, which a test decides on when it runs, that is meant, so that it fails
// no run that is meant to be complete.
type leftOut map[string][]string

// read takes a line "left out: TEST: REASON", which a package prints before its tests.
func (l leftOut) read(line string) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "left out: ")
	test, reason, both := strings.Cut(rest, ": ")
	if ok && both {
		l[reason] = append(l[reason], test)
	}
}

// write lists them.
func (l leftOut) write(w io.Writer) {
	for _, reason := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(w, "\n left out, %s:\n", reason)
		for _, test := range l[reason] {
			fmt.Fprintf(w, "   %s\n", test)
		}
	}
}
