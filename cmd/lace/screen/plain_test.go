package screen

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What a terminal would obey, or not show, is written out; what people read stays as it is.
func TestPlain(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"nothing to do", "default/web-1 → äpfel … █ \"x\" \\n", "default/web-1 → äpfel … █ \"x\" \\n"},
		{"an escape sequence", "web\x1b[2J\x1b[H", `web\x1b[2J\x1b[H`},
		{"a newline, a carriage return and a tab", "a\nb\rc\td", `a\nb\rc\td`},
		{"a control sequence of one character (C1)", "a\u009b2Jb", `a\u009b2Jb`},
		{"a mark that turns the direction of writing", "a\u202eb", `a\u202eb`},
		{"bytes that are no UTF-8", "a\xffb\x9b", `a\xffb\x9b`},
		{"the character that stands for such bytes", "a\ufffdb", "a\ufffdb"},
		{"a delete and a NUL", "\x7f\x00", `\x7f\x00`},
	}
	for _, c := range cases {
		if got := Plain(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// No text whatever leaves anything that is not shown, and plain text is left alone.
func FuzzPlain(f *testing.F) {
	f.Add("web\x1b[2J\n")
	f.Add("ä\xff\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", text, got)
		}
		if again := Plain(got); again != got {
			t.Errorf("%q became %q, and %q the second time", text, got, again)
		}
	})
}

// Every kind of text among the arguments is plain; the format and what is painted are not
// touched.
func TestPrintf(t *testing.T) {
	type word string
	var out strings.Builder
	Printf(&out, "%s %v %s %d %-4s|\n", "a\nb", errors.New("c\x1bd"), word("e\rf"), 7, Painted("\x1b[1mg\x1b[0m"))
	if want := "a\\nb c\\x1bd e\\rf 7 \x1b[1mg\x1b[0m|\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A cell cannot make a row, nor reach the terminal; columns are as wide as what is shown.
func TestCellsArePlain(t *testing.T) {
	var out strings.Builder
	if err := WriteTable(&out, Wide, fruitColumns, []fruit{{"figs\nforged 1", 0, "\x1b[2J"}}); err != nil {
		t.Fatal(err)
	}
	want := "NAME                    COUNT  NOTE\nfigs\\nforged 1  9999999999999  \\x1b[2J\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
