package main

import (
	"testing"

	"lace-cni.io/lace/cmd/lace/preflight"
)

// The last line of check says what all the others come to.
func TestCheckEndsWithItsOutcome(t *testing.T) {
	ok, warn, fail := preflight.Finding{Verdict: preflight.OK}, preflight.Finding{Verdict: preflight.Warn}, preflight.Finding{Verdict: preflight.Fail}
	for _, c := range []struct {
		findings []preflight.Finding
		want     string
	}{
		{[]preflight.Finding{ok, ok}, "Lace can run here."},
		{[]preflight.Finding{ok, warn, warn}, "Lace can run here. To know before: 2, marked warn."},
		{[]preflight.Finding{ok, fail}, "Lace cannot run here yet: 1 thing to mend."},
		{[]preflight.Finding{fail, warn, fail, fail}, "Lace cannot run here yet: 3 things to mend. To know before: 1, marked warn."},
	} {
		if got := outcome(c.findings); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
