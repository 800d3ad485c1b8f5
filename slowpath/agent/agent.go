package agent

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/fastpath/right"
	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/slowpath/metrics"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/publish"
)

// Run serves the node until ctx is done, which is no error. It returns early only when it
// cannot start, or when one of its parts failed in a way that a new start is the remedy
// for. What was published, and the routes of the service ranges, stay in every case. The
// error of a process that was refused something says which right it lacks.
func Run(ctx context.Context, c Config) error {
	return right.Explain(run(ctx, c), right.NetAdmin, right.BPF)
}

func run(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return err
	}
	if err := openState(c.StateDir); err != nil {
		return err
	}
	held, err := lock(c.path("agent.lock"), "lace-agent")
	if err != nil {
		return err
	}
	defer held.Close()
	if c.Stack == nil {
		k, err := netdev.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		c.Stack = k
	}
	return serve(ctx, &c)
}

// part is something that runs until its context ends.
type part func(context.Context) error

// serve builds the parts, runs them together and ends with the first that fails.
func serve(ctx context.Context, c *Config) error {
	var seen *observer
	var m *metrics.Metrics
	mended := newRepairs()
	publisher, err := publish.New(publish.Config{
