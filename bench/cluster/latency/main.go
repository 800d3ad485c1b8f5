// Command latency measures Lace and a real kube-proxy in nftables mode on one real API server,
// with thousands of Services: how long a change of an endpoint takes until the first packet is
// answered by the new one, how long a cold start takes, what memory is kept, and what is
// written to the API at rest.
//
// It owns the order of a run and its exit code. One node of the lab has Lace, as the built
// commands lace-agent and lace-fastpath, the other one kube-proxy; both read the same objects.
// They take turns, and while one is measured the other is halted, so that each has the machine
// for itself as on nodes of their own. What carries the packets is never halted.
//
// It needs root and make cluster-binaries; see docs/reference/latency.md. Everything runs in
// namespaces and ends with the process.
//
// Exit codes: 0 measured, whether goals were met or not; 1 something could not be measured, or
// the run was stopped; 2 the command line makes no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/cmd/usage"
)

const (
	exitDone  = 0
	exitBad   = 1
	exitUsage = 2
)

func main() {
	cluster.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run carries out one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage.Write(out, flags(new(options)), "measures Lace beside kube-proxy on a real API server")
		return exitDone
	case err != nil:
		return fail(errs, exitUsage, fmt.Errorf("%w\nTry: lace-latency --help", err))
	}
	if err := o.possible(); err != nil {
		return fail(errs, exitUsage, err)
	}
	if missing := testenv.Missing(); len(missing) > 0 {
		return fail(errs, exitBad, fmt.Errorf("run as root: missing %s", strings.Join(missing, ", ")))
	}
	b := newBench(o, errs)
	failed := b.measure(ctx)
	switch {
	case o.json == "":
	case ctx.Err() != nil:
		failed = b.run.WritePart(o.json, failed)
	default:
		failed = errors.Join(failed, b.run.Write(o.json))
	}
	if err := report(out, b.run, o); err != nil {
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fail(errs, exitBad, failed)
	}
	return exitDone
}

func fail(errs io.Writer, code int, err error) int {
	fmt.Fprintf(errs, "lace-latency: %v\n", err)
	return code
}
