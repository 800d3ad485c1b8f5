package dir

import (
	"bytes"
	"math"
	"regexp"
	"strings"
)

// document is one YAML document of a file.
type document struct {
	number int // from 1, empty ones do not count
	line   int // where it starts, from 1
	text   []byte
}

// split cuts a file at its separators: lines that are --- alone or go on after a space.
// Documents without content are left out.
func split(b []byte) (out []document) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	start, startLine, line := 0, 1, 1
	end := func(at int) {
		if text := b[start:at]; !blank(text) {
			out = append(out, document{number: len(out) + 1, line: startLine, text: text})
		}
	}
	for at := 0; at < len(b); line++ {
		next := len(b)
		if n := bytes.IndexByte(b[at:], '\n'); n >= 0 {
			next = at + n + 1
		}
		if separates(b[at:next]) {
			end(at)
			start, startLine = at+3, line
		}
		at = next
	}
	end(len(b))
	return out
}

func separates(line []byte) bool {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// blank reports whether a text holds nothing but space, comments and directives.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' && !bytes.Equal(line, []byte("...")) {
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
	if line := d.line + d.keyAt(key); key != "" && line >= d.line {
		return line
	}
	return d.first()
}

// keyAt is the one line, from 0, that has the key; far below 0 when there is not just one.
func (d *document) keyAt(key string) int {
	const none = math.MinInt32
	is := regexp.MustCompile(`(^|[\s{,"'])` + regexp.QuoteMeta(key) + `["']?\s*:`)
	found, n := none, 0
	for line := range bytes.Lines(d.text) {
		switch {
		case !is.Match(line):
		case found != none || len(is.FindAllIndex(line, 2)) > 1:
			return none
		default:
			found = n
		}
		n++
	}
	return found
}
