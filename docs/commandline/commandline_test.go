package commandline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsACommandLine(t *testing.T) {
	for _, c := range []struct {
		sentence, page string
		want           []Line
	}{
		{"a line of a block, with its prompt", "```\n$ lace get flows --all\n```",
			[]Line{{Where: "p:2", Text: "$ lace get flows --all", Words: []string{"get", "flows", "--all"}}}},
		{"an indented line", "    lace check",
			[]Line{{Where: "p:1", Text: "lace check", Words: []string{"check"}}}},
		{"quotes are the shell's", "    lace explain --to '[fd00::1]:80/udp'",
			[]Line{{Where: "p:1", Text: "lace explain --to '[fd00::1]:80/udp'", Words: []string{"explain", "--to", "[fd00::1]:80/udp"}}}},
		{"a pipe ends it", "    lace get flows | head -3",
			[]Line{{Where: "p:1", Text: "lace get flows | head -3", Words: []string{"get", "flows"}}}},
		{"so does an ampersand", "```\nlace &\n```",
			[]Line{{Where: "p:2", Text: "lace &"}}},
		{"a part of a sentence", "Say `lace get`, or `lace explain`.",
			[]Line{{Where: "p:1", Text: "lace get", Words: []string{"get"}, Mention: true}, {Where: "p:1", Text: "lace explain", Words: []string{"explain"}, Mention: true}}},
		{"other programs are not meant", "`lace-agent --lane off`, `ip link`", nil},
		{"output is no command", "```\n$ lace check\nlacework\n```",
			[]Line{{Where: "p:2", Text: "$ lace check", Words: []string{"check"}}}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ofPage("p", c.page, "lace")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestShort: what counts as a flag with too few hyphens.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"--kind", "full", "-"}, ""},
		{[]string{"-o", "wide", "-1s"}, ""},
		{[]string{"--json", "x", "-kind"}, "-kind"},
		{[]string{"-rounds=3"}, "-rounds=3"},
	} {
		l := Line{Words: c.words}
		if got := l.Short(); got != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

// TestGiven: the pages give variables of make, among others on the bench's page.
func TestGiven(t *testing.T) {
	lines, err := Given("../..", "BENCH")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if len(l.Words) < 2 || l.Words[0] == "" || l.Words[0][0] != '-' {
			t.Errorf("%s: %q is taken for %q", l.Where, l.Text, l.Words)
		}
	}
	if len(lines) == 0 {
		t.Error("no line gives BENCH")
	}
}
