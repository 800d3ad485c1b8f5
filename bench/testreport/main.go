// Command testreport runs `go test -json` and prints what a person wants to know: one
// line for each package, with the names of what failed in it, and at the end every failure
// with its output, every skip with its cause, what a package leaves out by a list of its own,
// and a last line with the counts. Interrupted or terminated it ends the tests and says all
// that of those that had ended, and which had not.
//
//	testreport ./...            run the tests
//	testreport ./p -source api  run those of p with a flag of their own
//	testreport --fuzz 10s ./... run each fuzz target for 10 s, one after the other
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"lace-cni.io/lace/cmd/usage"
)

func main() {
	f := flag.NewFlagSet("testreport", flag.ContinueOnError)
	fuzz := f.Duration("fuzz", 0, "run each fuzz target for this `time` instead of the tests")
	timeout := f.Duration("timeout", 40*time.Minute, "`time` limit of one package's tests")
	err := usage.Parse(f, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		usage.Write(os.Stdout, f, "runs tests and tells a person what came of them", "[packages and flags of go test]")
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testreport: %v\nTry: testreport --help\n", err)
		os.Exit(2)
	}
	patterns := f.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal ends the report too
	var report *Report
	if *fuzz > 0 {
		report, err = runFuzz(ctx, os.Stdout, patterns, *fuzz)
	} else {
		report, err = runTests(ctx, os.Stdout, patterns, *timeout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	report.Close(os.Stdout)
	if report.Failed() {
		os.Exit(1)
	}
}
