package dataplane

import (
	"testing"
	"time"
)

func TestStartOfAProcess(t *testing.T) {
	for _, c := range []struct {
		sentence, stat string
		want           time.Duration
		bad            bool
	}{
		{"an ordinary name", "7 (lace) S 1 7 7 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 9 0 12345 1 1\n", 123450 * time.Millisecond, false},
		{"a name with blanks and a parenthesis", "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 9 0 200 1 1\n", 2 * time.Second, false},
		{"a line that is cut", "7 (lace) S 1 7 7 0", 0, true},
		{"nothing", "", 0, true},
		{"a start that is no number", "7 (lace) S 1 7 7 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 9 0 x 1 1\n", 0, true},
	} {
		got, err := startedAt([]byte(c.stat))
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %v, %v; want %v", c.sentence, got, err, c.want)
		}
	}
}

func TestAgeGrows(t *testing.T) {
	first, err := age()
	if err != nil {
		t.Fatal(err)
	}
	second, err := age()
	if err != nil || first < 0 || second < first || first > time.Hour {
		t.Errorf("this process is %v old, then %v (%v)", first, second, err)
	}
}
