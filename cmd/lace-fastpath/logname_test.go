package main

import (
	"log/slog"
	"strings"
	"testing"
	"unicode"
)

// TestNamesReachNoTerminal: a device may be called what a terminal obeys; a line of the log
// shows it, and stays one line.
func TestNamesReachNoTerminal(t *testing.T) {
	const name = "ev\x1b[2J\xff\nforged"
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		slog.New((&options{logFormat: format}).handler(&out)).Warn("MTU of "+name, "device", name)
		line, ended := strings.CutSuffix(out.String(), "\n")
		if !ended || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}
