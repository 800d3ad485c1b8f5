// Command suite measures Lace beside what it replaces: kube-proxy's rules in the kernel, and
// the floor and the ceiling of what the machine can do. It builds a lab for each mode, takes
// turns between them, prints one table and one line for each goal, and records every figure.
//
// It owns the order of a run and its exit code; packages below it own one matter each:
//
//	plan     what is measured, in which order
//	rig      a lab with one mode in force
//	measure  one figure of one rig
//	record   what is kept of a run
//	stats    medians of paired ratios
//	goal     what is to be reached
//	report   table and lines
//	rules, ceiling, rings   the modes that are not Lace
//
// It needs root; see docs/reference/bench.md.
//
// A signal to stop (SIGINT, SIGTERM) is obeyed within two seconds, whatever is being done. A
// measurement that does not end in time has failed, and the run goes on without it.
//
// Exit codes: 0 measured, whether goals were met or not; 1 something that was asked for
// could not be measured, or the run was stopped; 2 the command line makes no sense.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/bench/suite/goal"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/report"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/cmd/usage"
)

const (
	exitDone  = 0
	exitBad   = 1
	exitUsage = 2
)

func main() {
	lab.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	over := leave(ctx, os.Stderr)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	over()
	stop()
	os.Exit(code)
}

// run carries out one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage.Write(out, flags(new(options)), "measures Lace beside what it replaces")
		return exitDone
	case err != nil:
		return fail(errs, exitUsage, fmt.Errorf("%w\nTry: lace-bench --help", err))
	}
	goals, err := goal.All()
	if err != nil {
		return fail(errs, exitBad, err)
	}
	if o.from != "" {
		r, err := recorded(o.from)
		if err != nil {
			return fail(errs, exitBad, fmt.Errorf("--from: %w", err))
		}
		return show(out, errs, o, r, goals)
	}
	return measured(ctx, o, out, errs, goals)
}

// recorded is a run of this program. Others record theirs in the same form.
func recorded(path string) (*record.Run, error) {
	r, err := record.Read(path)
	if err != nil {
		return nil, err
	}
	if kinds := []string{record.Smoke, record.Bench, record.Full}; !slices.Contains(kinds, r.Kind) {
		return nil, fmt.Errorf("%s records a run of kind %q and none of lace-bench, which are %s", path, r.Kind, strings.Join(kinds, ", "))
	}
	return r, nil
}

// measured carries a plan out and shows what came of it. What was measured before something
// broke is recorded, and what could not be recorded is shown all the same.
func measured(ctx context.Context, o *options, out, errs io.Writer, goals []goal.Goal) int {
	p, err := o.plan()
	if err != nil {
		return fail(errs, exitUsage, err)
	}
	if err := o.recordable(); err != nil {
		return fail(errs, exitUsage, err)
	}
	if missing := testenv.Missing(); len(missing) > 0 {
		return fail(errs, exitBad, fmt.Errorf("run as root: missing %s", strings.Join(missing, ", ")))
	}
	say := errs
	if o.quiet {
		say = io.Discard
	}
	d, err := newDriver(p, say)
	if err != nil {
		return fail(errs, exitUsage, err)
	}
	if err := d.measure(ctx); err != nil {
		return fail(errs, exitBad, o.keepPart(d.run, d.why(ctx, err)))
	}
	kept := o.keep(d.run)
	if code := show(out, errs, o, d.run, goals); code != exitDone {
		return code
	}
	if n := len(d.broken); n > 0 {
		kept = errors.Join(kept, fmt.Errorf("%d measurements or modes failed:\n%s", n, strings.Join(d.broken, "\n")))
	}
	if kept != nil {
		return fail(errs, exitBad, kept)
	}
	return exitDone
}

func show(out, errs io.Writer, o *options, r *record.Run, goals []goal.Goal) int {
	var text bytes.Buffer
	var err error
	switch {
	case o.insert != "":
		err = report.Summary(&text, r, goals)
	case o.markdown:
		err = report.Markdown(&text, r)
	default:
		err = report.Whole(&text, r, goals)
	}
	shown := plain(text.String())
	switch {
	case o.insert == "":
		_, e := io.WriteString(out, shown)
		err = errors.Join(err, e)
	case err == nil:
		err = report.InsertFile(o.insert, []byte(shown))
	}
	if err != nil {
		return fail(errs, exitBad, err)
	}
	return exitDone
}

// plain shows what a terminal would obey: a record is a file of whoever wrote it.
func plain(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = screen.Plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

func fail(errs io.Writer, code int, err error) int {
	fmt.Fprintf(errs, "lace-bench: %v\n", err)
	return code
}
