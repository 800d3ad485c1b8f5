// Command lace is what people use Lace with: a demo that needs no cluster, a check of
// the machine, and questions to the agent of a node.
//
// It owns wording, layout and exit codes. It never links client-go, never talks to an
// API server and never changes the state of a node: what it shows of a running node comes
// from the agent's admin socket (slowpath/adminserver/api).
//
// Exit codes: 0 done; 1 the answer is bad or could not be had; 2 the command line makes
// no sense.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"lace-cni.io/lace/bench/lab"
)

func main() {
	lab.Main() // the demo's processes are this executable again
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills: whatever is stuck is not waited for
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
