// Command lace-agent is the slow path of a node: it reads what is declared, follows the
// node's network, and publishes what the fast path works by.
//
// It owns flags, log format and exit codes; package slowpath/agent does the work. It may
// be killed or upgraded at any moment: packets do not depend on it.
//
// Exit codes: 0 ended as asked to; 1 could not start or go on; 2 the command line makes
// no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"lace-cni.io/lace/cmd/usage"
	"lace-cni.io/lace/slowpath/agent"
)

// version is set by the linker.
var version = "unknown"

const (
	exitDone  = 0
	exitBad   = 1
	exitUsage = 2
)

func main() {
	thrift()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run carries out one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage.Write(out, flags(new(options)), "publishes what lace-fastpath works by")
		return exitDone
	case err != nil:
		fmt.Fprintf(errs, "lace-agent: %v\nTry: lace-agent --help\n", err)
		return exitUsage
	case o.version:
		fmt.Fprintln(out, version)
		return exitDone
	}
	if o.cleanup {
		removed, failed := agent.Cleanup(o.config(errs))
		err = tell(out, removed, failed)
	} else {
		err = o.serve(ctx, o.config(errs))
	}
	if err != nil {
		fmt.Fprintf(errs, "lace-agent: %v\n", err)
		return exitBad
	}
	return exitDone
}

// tell says what a cleanup removed, and returns its error.
func tell(out io.Writer, removed []string, err error) error {
	for _, what := range removed {
		fmt.Fprintln(out, "removed", what)
	}
	if err == nil && len(removed) == 0 {
		fmt.Fprintln(out, "nothing of Lace was left here")
	}
	return err
}
