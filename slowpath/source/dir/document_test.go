package dir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A key is found by its line, when it is in one place.
func TestKeyLines(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want map[string]int
	}{
		{"a: 1\nb:\n  c.d/e: x\n- f : 2\n", map[string]int{"a": 0, "b": 1, "c.d/e": 2, "f": 3}},
		{"{\"a\":{\"b\":1},\n'c' : 2,d: 3}", map[string]int{"a": 0, "b": 0, "c": 1, "d": 1}},
		{"a: 1\nb: {a: 2}\nc: {d: 1, d: 2}\n", map[string]int{"a": severalLines, "b": 1, "c": 2, "d": severalLines}},
		{"a\n[b]\n", map[string]int{}},
	} {
		if d := cmp.Diff(tc.want, keyLines([]byte(tc.in))); d != "" {
			t.Errorf("%q (-want +got):\n%s", tc.in, d)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"space and comments only", "\n# a\n  \n---\n%YAML 1.2\n---\n...\n", ""},
		{"one document", "a: 1\n", "1@1:a: 1"},
		{"one document behind a separator", "---\na: 1\n", "1@1:a: 1"},
		{"two documents", "a: 1\n---\nb: 2", "1@1:a: 1 2@2:b: 2"},
		{"empty documents do not count", "---\n---\n# c\n---\na: 1\n---\n---\nb: 2\n", "1@4:a: 1 2@7:b: 2"},
		{"separator with a comment", "a: 1\n--- # next\nb: 2\n", "1@1:a: 1 2@2:# next|b: 2"},
		{"separator with content", "a: 1\n--- {b: 2}\n", "1@1:a: 1 2@2:{b: 2}"},
		{"windows line ends", "a: 1\r\n---\r\nb: 2\r\n", "1@1:a: 1 2@2:b: 2"},
		{"a byte order mark", "\xef\xbb\xbfa: 1\n", "1@1:a: 1"},
		{"a line of three dots ends a document, and what follows is another", "a: 1\n...\nb: 2\n... # c\n---\nc: 3\n", "1@1:a: 1 2@2:b: 2 3@5:c: 3"},
		{"more or fewer dots end nothing", "a: 1\n....\n..\n", "1@1:a: 1|....|.."},
		{"directives do not count", "%YAML 1.2\n%TAG ! x:\n# c\n---\na: 1\n...\n%YAML 1.2\n---\nb: 2\n", "1@4:a: 1 2@8:b: 2"},
		{"a directive of nothing is text", "a: 1\n---\n%YAML 1.2\n", "1@1:a: 1 2@2:%YAML 1.2"},
		{"what only looks like a directive is text", "%%% x\n---\na: 1\n", "1@1:%%% x 2@2:a: 1"},
		{"JSON objects side by side and below each other", "{\"a\":1} {\"b\":\n2}{}\n# c\n{\"c\":3}\n", `1@1:{"a":1} 2@1:{"b":|2} 3@2:{} 4@2:# c|{"c":3}`},
		{"JSON behind a comment and a separator", "# c\n--- {\"a\":1}\n---\n# d\n\n {\"b\":2} # e\n", `1@2:{"a":1} 2@3:# d|| {"b":2}`},
		{"what follows JSON is not lost", "{\"a\":1} x\n{\"b\":2}\n", `1@1:{"a":1} 2@1:x|{"b":2}`},
		{"braces that are not JSON are not cut", "{a: 1} {\"b\":2}\n", `1@1:{a: 1} {"b":2}`},
		{"a comment ends with its line, whatever ends that", "# c\ra: 1\n", "1@1:# ca: 1"},
		{"dashes inside a line, and longer ones, separate nothing", "a: ---\n----\nb: 2\n", "1@1:a: ---|----|b: 2"},
		{"an indented separator is text", "a: |\n  ---\n  b\n", "1@1:a: ||  ---|  b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, d := range split([]byte(tc.in)) {
				text := strings.ReplaceAll(strings.TrimSpace(string(d.text)), "\n", "|")
				got = append(got, fmt.Sprintf("%d@%d:%s", d.number, d.line, strings.ReplaceAll(text, "\r", "")))
			}
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Errorf("documents as number@line:text (-want +got):\n%s", d)
			}
		})
	}
}
