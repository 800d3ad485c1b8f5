package screen

import (
	"os"

	"golang.org/x/term"
)

// Paint colours words, or leaves them alone. The zero value leaves them alone.
type Paint struct{ on bool }

// NewPaint colours when f is a terminal that can, the environment does not set NO_COLOR
// (no-color.org: any value but the empty one) and plain is false.
func NewPaint(f *os.File, plain bool) Paint {
	return Paint{on: !plain && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(f)}
}

// IsTerminal says whether a person looks at f.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Good, Bad, Warn, Faint and Bold mark a word (ECMA-48, select graphic rendition).
func (p Paint) Good(s string) string  { return p.with("32", s) }
func (p Paint) Bad(s string) string   { return p.with("31", s) }
func (p Paint) Warn(s string) string  { return p.with("33", s) }
func (p Paint) Faint(s string) string { return p.with("2", s) }
func (p Paint) Bold(s string) string  { return p.with("1", s) }

func (p Paint) with(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
