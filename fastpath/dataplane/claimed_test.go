package dataplane

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestClaimsThatStayAreNotTrimmed: tables that claim what the last ones did wait for no look at
// every claim; where claims could not be trimmed they are tried again.
func TestClaimsThatStayAreNotTrimmed(t *testing.T) {
	tb, r := newTables(t, &transcript{})
	trims := func() int {
		return len(slices.DeleteFunc(slices.Clone(r.calls), func(c string) bool { return !strings.Contains(c, "trim claims") }))
	}
	for _, step := range []struct {
		what       string
		generation uint64
		vips       int
		fails      error
		want       int
	}{
		{"the first tables", 1, 2, nil, 1},
		{"the same claims", 2, 2, nil, 1},
		{"one less", 3, 1, errors.New("full"), 2},
		{"the same after a failure", 4, 1, nil, 3},
		{"the same again", 5, 1, nil, 3},
		{"one more", 6, 2, nil, 4},
	} {
		r.fails = step.fails
		write(t, tb.path, vipTables(step.generation, step.vips))
		tb.refresh(t.Context())
		if got := trims(); got != step.want {
			t.Errorf("%s: claims were trimmed %d times, want %d", step.what, got, step.want)
		}
	}
}
