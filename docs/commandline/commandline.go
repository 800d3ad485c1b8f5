// Package commandline finds the command lines that documents tell people to type, so that
// the test of each command can hold the documents to the flags that there are.
//
// It owns what counts as a command line of a page. It never runs one, and is used by tests
// only.
package commandline

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Line is one command line of a page.
type Line struct {
	Where string   // page and line number
	Text  string   // as the page has it
	Words []string // behind the program's name, quotes removed
	// Mention is a part of a sentence: it may leave out what the command needs.
	Mention bool
}

// Elided says that the page leaves a value out.
func (l *Line) Elided() bool { return strings.Contains(l.Text, "…") }

var (
	span   = regexp.MustCompile("`([^`]+)`")
	prompt = regexp.MustCompile(`^(\$ )?(sudo )?`)
	tail   = regexp.MustCompile(` (\||&|>|&&) ?.*$|;.*$| &$`)
)

// Of returns what the pages below root (README.md and docs) say of a program: whole lines
// of code blocks, and code within sentences.
func Of(root, program string) (out []Line, err error) {
	pages := []string{filepath.Join(root, "README.md")}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		out = append(out, ofPage(page, string(b), program)...)
	}
	return out, nil
}

// ofPage takes fenced and indented lines whole, and of other lines what is in backquotes.
func ofPage(page, text, program string) (out []Line) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("%s:%d", page, i+1)
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			if words, ok := Split(prompt.ReplaceAllString(trimmed, ""), program); ok {
				out = append(out, Line{Where: where, Text: trimmed, Words: words})
			}
		default:
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				if words, ok := Split(m[1], program); ok {
					out = append(out, Line{Where: where, Text: m[1], Words: words, Mention: true})
				}
			}
		}
	}
	return out
}

// Split cuts a line into words as a shell does, up to the first pipe or the like. It
// reports whether the line is one of the program.
func Split(text, program string) (words []string, ok bool) {
	text, ok = strings.CutPrefix(tail.ReplaceAllString(text, ""), program+" ")
	if !ok {
		return nil, text == program
	}
	word, quote, open := "", rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && r == ' ':
			if open {
				words, word, open = append(words, word), "", false
			}
		default:
			word, open = word+string(r), true
		}
	}
	if open {
		words = append(words, word)
	}
	return words, true
}

// short is a flag with one hyphen whose name has more than a letter.
var short = regexp.MustCompile(`^-[A-Za-z][A-Za-z-]+(=|$)`)

// Short returns the first flag that the line spells with one hyphen. Pages spell flags with
// two, though commands may take both. Empty: none.
func (l *Line) Short() string {
	for _, w := range l.Words {
		if short.MatchString(w) {
			return w
		}
	}
	return ""
}

// Given returns, for each line that gives a variable of make, the command line that is its
// value: BENCH, say, which the recipe adds to a program's flags.
func Given(root, variable string) (out []Line, err error) {
	lines, err := Of(root, "make")
	for _, l := range lines {
		for _, w := range l.Words {
			if value, ok := strings.CutPrefix(w, variable+"="); ok {
				l.Words = strings.Fields(value)
				out = append(out, l)
			}
		}
	}
	return out, err
}
