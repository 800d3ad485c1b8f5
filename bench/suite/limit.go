package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"lace-cni.io/lace/bench/suite/measure"
	"lace-cni.io/lace/bench/suite/plan"
)

const (
	// slack is what one measurement may take beyond its own times: setting up, settling and
	// attempts that wait for an answer.
	slack = 15 * time.Second
	// yielding is how long a measurement has to come back once it was told to stop.
	yielding = time.Second
	// leaving is how long the whole process has for that.
	leaving = 1800 * time.Millisecond
)

var errOverdue = errors.New("it did not end in time")

// within carries out one measurement, which fails when it takes too long. One that does not
// even stop then keeps its rig for itself, which is not used again.
func (d *driver) within(ctx context.Context, place plan.Place, run func(context.Context) (measure.Values, error)) (measure.Values, error) {
	limit := d.patience()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errOverdue)
	defer cancel()
	type outcome struct {
		values measure.Values
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := run(ctx)
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.values, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return nil, errors.Join(context.Cause(ctx), o.err)
	case <-time.After(yielding):
		delete(d.rigs, place)
		return nil, fmt.Errorf("%w and hangs after %s: nothing more is measured of %s with %d services",
			context.Cause(ctx), limit+yielding, place.Mode, place.Services)
	}
}

// patience is the most that one measurement may take.
func (d *driver) patience() time.Duration {
	return 2*(d.plan.Times.Warm+d.plan.Times.For) + d.slack
}

// leave ends the process when it was told to stop and has not ended by itself soon after,
// whatever holds it up. What it started ends with it.
func leave(ctx context.Context, errs io.Writer) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		select {
		case <-over:
		case <-time.After(leaving):
			fmt.Fprintln(errs, "lace-bench: stopped before everything was put away: what was measured may not be recorded")
			os.Exit(exitBad)
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}
