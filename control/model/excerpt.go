package model

import (
	"fmt"
	"reflect"
	"unicode/utf8"
)

// MaxExcerpt is how many bytes of one word of an object a Problem shows. The longest
// namespace and name together are below it.
const MaxExcerpt = 320

// Excerpt is a text as a Problem shows it: the beginning of one that is too long, and
// how long it is. It cuts between characters.
func Excerpt(s string) string {
	if len(s) <= MaxExcerpt {
		return s
	}
	end := MaxExcerpt
	for end > MaxExcerpt-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:end], len(s))
}

// Excerpts are the arguments of a message with every text among them cut.
func Excerpts(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a
		if v := reflect.ValueOf(a); v.Kind() == reflect.String && v.Len() > MaxExcerpt {
			out[i] = Excerpt(v.String())
		}
	}
	return out
}
