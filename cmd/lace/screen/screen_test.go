package screen

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type fruit struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Note  string `json:"note,omitempty"`
}

var fruits = []fruit{{"äpfel", 3, "ripe"}, {"figs", 12345, ""}}

var fruitColumns = []Column[fruit]{
	{Title: "NAME", Value: func(f fruit) string { return f.Name }},
	{Title: "COUNT", Right: true, Value: func(f fruit) string { return strings.Repeat("9", utf8.RuneCountInString(f.Name)) }},
	{Title: "NOTE", Wide: true, Value: func(f fruit) string { return f.Note }},
}

// A rare column shows where an item has something in it.
func TestRareColumns(t *testing.T) {
	columns := []Column[fruit]{{Title: "NAME", Value: func(f fruit) string { return f.Name }}, {Title: "NOTE", Rare: true, Value: func(f fruit) string { return f.Note }}}
	for _, c := range []struct {
		items []fruit
		want  string
	}{
		{fruits, "NAME   NOTE\näpfel  ripe\nfigs   -\n"},
		{fruits[1:], "NAME\nfigs\n"},
	} {
		var out strings.Builder
		if err := WriteTable(&out, Wide, columns, c.items); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Columns line up by characters, wide ones show only when asked for, empty cells are
// dashes and no line ends in spaces.
func TestWriteTable(t *testing.T) {
	cases := []struct {
		format Format
		want   string
	}{
		{Table, "NAME   COUNT\näpfel  99999\nfigs    9999\n"},
		{Wide, "NAME   COUNT  NOTE\näpfel  99999  ripe\nfigs    9999  -\n"},
	}
	for _, c := range cases {
		var out strings.Builder
		if err := WriteTable(&out, c.format, fruitColumns, fruits); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s: %s", c.format, diff)
		}
	}
}

// JSON and YAML carry the same fields under the same names.
func TestEncode(t *testing.T) {
	for format, want := range map[Format]string{
		JSON: "[\n  {\n    \"name\": \"äpfel\",\n    \"count\": 3,\n    \"note\": \"ripe\"\n  }\n]\n",
		YAML: "- count: 3\n  name: äpfel\n  note: ripe\n",
	} {
		var out strings.Builder
		if err := Encode(&out, format, fruits[:1]); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}

// The flag takes the four formats and names them when it gets another one.
func TestFormatFlag(t *testing.T) {
	var f Format
	for _, known := range Formats {
		if err := f.Set(string(known)); err != nil || f != known {
			t.Errorf("%s: %v, %v", known, f, err)
		}
	}
	if err := f.Set("xml"); err == nil || !strings.Contains(err.Error(), "table, wide, json, yaml") {
		t.Errorf("xml: %v", err)
	}
}

// Nothing is coloured that no person looks at.
func TestPaintLeavesFilesAlone(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := NewPaint(f, false).Bad("gone"); got != "gone" {
		t.Errorf("into a file: %q", got)
	}
	if got := (Paint{on: true}).Bad("gone"); got != "\x1b[31mgone\x1b[0m" {
		t.Errorf("onto a terminal: %q", got)
	}
}
