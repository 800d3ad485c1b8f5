package screen

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Plain writes out, as Go's string literals do, whatever a terminal would not show as a
// character: control characters (ESC and newline among them), marks that turn the direction of
// writing, and bytes that are no UTF-8. Names come from whoever may write an object, a file or
// a device, who must not be able to add a row to a table or to clear the screen. Text without
// such characters is returned as it is.
func Plain(s string) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if shown(r, size) {
			out.WriteString(s[i : i+size])
		} else {
			quoted := strconv.Quote(s[i : i+size])
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return out.String()
}

func plain(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !shown(r, size) {
			return false
		}
		i += size
	}
	return true
}

// shown says whether a character that takes size bytes is one that people see.
func shown(r rune, size int) bool {
	return strconv.IsPrint(r) && !(r == utf8.RuneError && size == 1)
}

// Printf is fmt.Fprintf with every text among the arguments made Plain. The format is the
// command's own and may hold newlines and colours; an argument that is painted must be plain
// before it is, and be given as Painted.
func Printf(w io.Writer, format string, args ...any) {
	for i, a := range args {
		args[i] = argument(a)
	}
	fmt.Fprintf(w, format, args...)
}

// Painted is text that is plain but for its colours.
type Painted string

func argument(a any) any {
	switch v := a.(type) {
	case Painted:
		return string(v)
	case error:
		return Plain(v.Error())
	}
	if v := reflect.ValueOf(a); v.Kind() == reflect.String {
		return Plain(v.String())
	}
	return a
}
