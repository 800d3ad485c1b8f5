package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

func runTests(ctx context.Context, w io.Writer, patterns []string, timeout time.Duration) (*Report, error) {
	r := newReport()
	r.complete = os.Getenv("LACE_REQUIRE_PRIVILEGED") == "1"
	args := append([]string{"test", "-json", "-timeout", timeout.String()}, patterns...)
	return r, goTest(ctx, r, w, args)
}

// runFuzz fuzzes the targets one after the other, as go test demands; a target that
// finds an input fails the report and leaves the input in its testdata folder.
func runFuzz(ctx context.Context, w io.Writer, patterns []string, each time.Duration) (*Report, error) {
	targets, err := fuzzTargets(patterns)
	if err != nil {
		return nil, err
	}
	r := newReport()
	for _, t := range targets {
		fmt.Fprintf(w, " %-34s %-22s for %s", strings.TrimPrefix(t.pkg, "lace-cni.io/lace/"), t.test, each)
		args := []string{"test", "-json", "-run", "^$", "-fuzz", "^" + t.test + "$", "-fuzztime", each.String(), "-fuzzminimizetime", "1x", t.pkg}
		if err := goTest(ctx, r, io.Discard, args); err != nil {
			return nil, err
		}
		if r.stopped {
			fmt.Fprintln(w)
			break
		}
		r.forgive(t)
		fmt.Fprintf(w, " %12d inputs\n", r.endTarget())
	}
	return r, nil
}

// patience is how long go test may take to end when it is told to.
const patience = 5 * time.Second

// goTest feeds the report until ctx ends; failing tests are the report's business, not an
// error.
func goTest(ctx context.Context, r *Report, w io.Writer, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	// The tests are in a group of their own: go test does not end them with itself, and they
	// must not end by the same signal before the report has taken note of it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = patience
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := r.Read(ctx, out, w); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return err
	}
	return nil
}

func fuzzTargets(patterns []string) ([]key, error) {
	cmd := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	var keys []key
	sc := bufio.NewScanner(bytes.NewReader(out))
	for sc.Scan() {
		pkg, dir, _ := strings.Cut(sc.Text(), " ")
		names, err := fuzzNames(dir)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			keys = append(keys, key{pkg, n})
		}
	}
	return keys, nil
}

// fuzzNames finds the fuzz functions in the test files of one folder.
func fuzzNames(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		b, err := os.ReadFile(dir + "/" + f.Name())
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, "func Fuzz"); ok {
				name, _, _ := strings.Cut(rest, "(")
				names = append(names, "Fuzz"+name)
			}
		}
	}
	return names, nil
}
