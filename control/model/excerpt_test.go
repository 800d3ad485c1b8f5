package model_test

import (
	"fmt"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
)

func TestExcerpt(t *testing.T) {
	type word string
	x := strings.Repeat("x", model.MaxExcerpt)
	for _, tc := range []struct {
		name string
		in   any
		want string
	}{
		{"a short text stays", "web", "web"},
		{"one as long as may be stays", x, x},
		{"a longer one is cut, and says how long it is", x + "y", x + "… (321 bytes)"},
		{"it is cut between characters", x[1:] + "ö", x[1:] + "… (321 bytes)"},
		{"bytes that are no text are cut all the same", strings.Repeat("\x80", 400), strings.Repeat("\x80", 316) + "… (400 bytes)"},
		{"a text of a type of its own is one", word(x + "y"), x + "… (321 bytes)"},
		{"a number is none", 7, "7"},
		{"nothing is none", nil, "<nil>"},
	} {
		if got := fmt.Sprint(model.Excerpts([]any{tc.in})...); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
