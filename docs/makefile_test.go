package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakeDemo: it takes the rights that it can get, and runs without them too.
func TestMakeDemo(t *testing.T) {
	const (
		granted = "case $1 in -n|-v) exit 0;; esac; echo as root: \"$@\""
		refused = "exit 1"
	)
	makefile, err := filepath.Abs("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ sentence, user, sudo, demo, want string }{
		{"root needs no sudo", "0", refused, "--once", "lace demo --once\n"},
		{"sudo lends the rights", "1000", granted, "--once", "as root: bin/lace demo --once\n"},
		{"a wrong password, or no terminal to ask for one", "1000", refused, "--once", "no root, so the demo is simulated\nlace demo --once\n"},
		{"a simulation asks for nothing", "1000", granted, "--sim", "lace demo --sim\n"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			dir := t.TempDir()
			script(t, filepath.Join(dir, "bin", "lace"), `echo lace "$@"`)
			script(t, filepath.Join(dir, "path", "sudo"), c.sudo)
			script(t, filepath.Join(dir, "path", "id"), "echo "+c.user)
			cmd := exec.Command("make", "-s", "-C", dir, "-f", makefile, "demo", "GO=true", "DEMO="+c.demo)
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "MAKEFLAGS=", "MAKELEVEL=")
			out, err := cmd.Output()
			if err != nil || string(out) != c.want {
				t.Errorf("said %q, %v; want %q", out, err, c.want)
			}
		})
	}
}

// TestMakeHelp: every target is in the list, and their texts begin in one column.
func TestMakeHelp(t *testing.T) {
	out, err := exec.Command("make", "-s", "-C", "..", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) < 15 {
		t.Errorf("only %d targets:\n%s", len(lines), out)
	}
	column := regexp.MustCompile(`^  make [a-z0-9-]+ +`)
	for _, line := range lines {
		if got, want := len(column.FindString(line)), len(column.FindString(lines[0])); got != want {
			t.Errorf("%q: the text begins in column %d, that of the first line in %d", line, got, want)
		}
	}
}

// TestRecipesSpellFlagsWithTwoHyphens: those of the project's own programs, as its pages do.
func TestRecipesSpellFlagsWithTwoHyphens(t *testing.T) {
	var (
		program = regexp.MustCompile(`(bin/(lace|conformance-report)[a-z-]*|bench/testreport|run\.sh|[A-Z]+="-).*`)
		short   = regexp.MustCompile(`[ "]-[a-z][a-z-]+`)
		seen    = 0
	)
	for _, path := range []string{"../Makefile", "../bench/conformance/run.sh"} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "\\\n", "")
		for line := range strings.Lines(text) {
			call := program.FindString(line)
			if call == "" || strings.Contains(line, "$(GO) build") {
				continue
			}
			seen++
			call, _, _ = strings.Cut(call, " -source ") // of go test, as are all behind packages
			if f := short.FindString(call); f != "" {
				t.Errorf("%s: %q has one hyphen in %s", path, f[1:], line)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d calls were found", seen)
	}
}

// script writes a shell script.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
