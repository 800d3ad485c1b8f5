package dir

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// document is one document of a file.
type document struct {
	number int // from 1, empty ones do not count
	line   int // where it starts, from 1
	text   []byte
	json   []byte // the object in it, when it is JSON

	keys map[string]int // see keyLines; nil until they are asked for
}

// split cuts a file into documents: at lines that are --- or ..., alone or before a space, and
// behind each object that is JSON, as kubectl does. Whatever has content is in one of them.
func split(b []byte) (out []document) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	start, startLine, line := 0, 1, 1
	for at := 0; at < len(b); line++ {
		next := len(b)
		if n := bytes.IndexByte(b[at:], '\n'); n >= 0 {
			next = at + n + 1
		}
		if begins := marks(b[at:next], "---"); begins || marks(b[at:next], "...") {
			if text := b[start:at]; !begins || !directives(text) {
				out = cut(out, text, startLine)
			}
			start, startLine = at+3, line
		}
		at = next
	}
	return cut(out, b[start:], startLine)
}

func marks(line []byte, mark string) bool {
	rest, found := bytes.CutPrefix(line, []byte(mark))
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// cut appends the documents of a text in which none is marked.
func cut(out []document, text []byte, line int) []document {
	for !blank(text) {
		d := document{number: len(out) + 1, line: line, text: text}
		if object, end := object(text); object != nil {
			d.json, d.text = object, text[:end]
		}
		out = append(out, d)
		line += bytes.Count(d.text, []byte("\n"))
		text = text[len(d.text):]
	}
	return out
}

// object is the JSON object that a text begins with, but for space and comments, and where it
// ends; nil: it begins with something else.
func object(text []byte) (found json.RawMessage, end int) {
	at := lead(text)
	if at == len(text) || text[at] != '{' {
		return nil, 0
	}
	d := json.NewDecoder(bytes.NewReader(text[at:]))
	if d.Decode(&found) != nil {
		return nil, 0
	}
	return found, at + int(d.InputOffset())
}

// lead is how many bytes of space and comments a text begins with. It looks no further.
func lead(text []byte) int {
	for at := 0; ; {
		at += len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n"))
		if at == len(text) || text[at] != '#' {
			return at
		}
		end := bytes.IndexAny(text[at:], "\n\r\u0085\u2028\u2029") // as the reader of YAML has it
		if end < 0 {
			return len(text)
		}
		at += end
	}
}

// blank reports whether a text holds nothing but space and comments.
func blank(text []byte) bool { return lead(text) == len(text) }

// directives reports whether a text before a line --- holds nothing but space, comments and
// directives.
func directives(text []byte) bool {
	for line := range bytes.Lines(text) {
		if !blank(line) && !bytes.HasPrefix(line, []byte("%YAML ")) && !bytes.HasPrefix(line, []byte("%TAG ")) {
			return false
		}
	}
	return true
}

// first is the line of the file where the content of the document begins.
func (d *document) first() int {
	n := d.line
	for line := range bytes.Lines(d.text) {
		if !blank(line) {
			break
		}
		n++
	}
	return n
}

// lineOf is the line of the file where a field is: its own, when only one line of the document
// has a key of that name, or else the one where the content of the document begins.
func (d *document) lineOf(field string) int {
	key := field[strings.LastIndexByte(field, '.')+1:]
	key, _, _ = strings.Cut(key, "[")
	if d.keys == nil {
		d.keys = keyLines(d.text)
	}
	if n, there := d.keys[key]; there && n != severalLines {
		return d.line + n
	}
	return d.first()
}

// severalLines is where a key is that is in more than one place.
const severalLines = -1

// keyed finds one key after the other: quotes may be around it, and a colon is behind it.
var keyed = regexp.MustCompile(`(?:^|[\s{,"'])([^\s{}\[\],:"']+)["']?\s*:`)

// keyLines are the lines, from 0, that have each key of a text, or severalLines. They are worked
// out once for all Problems of a document, of which there may be as many as it has lines.
func keyLines(text []byte) map[string]int {
	out, n := map[string]int{}, 0
	for line := range bytes.Lines(text) {
		for at := keyed.FindSubmatchIndex(line); at != nil; at = keyed.FindSubmatchIndex(line) {
			key := string(line[at[2]:at[3]])
			if _, before := out[key]; before {
				out[key] = severalLines
			} else {
				out[key] = n
			}
			line = line[at[1]:]
		}
		n++
	}
	return out
}
