package resolve

import (
	"fmt"
	"strings"
	"testing"
)

// TestParseRanges: prefixes, or an error that says what to write.
func TestParseRanges(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{"", "[]", ""},
		{"10.96.0.0/16, fd00:10:96::/112", "[10.96.0.0/16 fd00:10:96::/112]", ""},
		{"10.96.0.0/16,", "[10.96.0.0/16]", ""},
		{", ,", "", "nothing stands between the commas"},
		{"10.96.0.0", "", `"10.96.0.0" is no prefix such as 10.96.0.0/16`},
		{"10.96.0.1/16", "", "do you mean 10.96.0.0/16?"},
	} {
		got, err := ParseRanges(c.in)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %q", c.in, err, c.err)
			}
		case err != nil || fmt.Sprint(got) != c.want:
			t.Errorf("%q: %v, error %v, want %s", c.in, got, err, c.want)
		}
	}
}
