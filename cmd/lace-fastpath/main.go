// Command lace-fastpath is the fast path of a node: it decides about the packets of
// Services and carries them.
//
// It owns flags, log format and exit codes; package fastpath/dataplane does the work. It
// holds no credentials and knows nothing of Kubernetes: what it works by is the snapshot
// that lace-agent writes. Killed and started again it goes on with the flows it had.
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
	"lace-cni.io/lace/fastpath/dataplane"
)

// version is set by the linker.
var version = "unknown"

const (
	exitDone  = 0
	exitBad   = 1
	exitUsage = 2
)

func main() {
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
		usage.Write(out, flags(new(options)), "decides about the packets of Services and carries them")
		return exitDone
	case err != nil:
		fmt.Fprintf(errs, "lace-fastpath: %v\nTry: lace-fastpath --help\n", err)
		return exitUsage
	case o.version:
		fmt.Fprintln(out, version)
		return exitDone
	}
	if o.cleanup {
		err = cleanup(o.config(errs), out)
	} else {
		err = dataplane.Run(ctx, o.config(errs))
	}
	if err != nil {
		fmt.Fprintf(errs, "lace-fastpath: %v\n", err)
		return exitBad
	}
	return exitDone
}

// cleanup says what it has removed.
func cleanup(c dataplane.Config, out io.Writer) error {
	removed, err := dataplane.Cleanup(c)
	for _, what := range removed {
		fmt.Fprintln(out, "removed", what)
	}
	if len(removed) == 0 && err == nil {
		fmt.Fprintln(out, "nothing of lace-fastpath was left here")
	}
	return err
}
