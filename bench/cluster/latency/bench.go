package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"lace-cni.io/lace/bench/suite/record"
)

// Loads of the record: what was measured.
const (
	loadIdle   = "change-idle"
	loadLoaded = "change-loaded"
	loadCold   = "cold-start"
	loadMemory = "memory"
	loadRest   = "rest"
	onNode     = "node" // clients and backends are on one node
)

// bench is one run.
type bench struct {
	*options
	run   *record.Run
	stage *stage
	say   io.Writer
	begun time.Time
}

func newBench(o *options, say io.Writer) *bench {
	return &bench{options: o, say: say, begun: time.Now(), run: &record.Run{
		Layout: record.Layout, Kind: "latency", Started: time.Now().UTC(), Machine: record.ThisMachine(), Rounds: max(o.changes, o.starts),
	}}
}

// measure takes every figure that was asked for. A part that fails does not keep the others
// from being measured.
func (b *bench) measure(ctx context.Context) (err error) {
	defer func() {
		b.run.Seconds = time.Since(b.begun).Seconds()
		b.run.Machine.LoadEnd = record.LoadAverage()
	}()
	b.quiet()
	b.progress("starting a control plane")
	if b.stage, err = openStage(ctx, b.options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stage.Close()) }()
	var errs []error
	if b.has(partIdle) || b.has(partLoaded) {
		errs = append(errs, b.changing(ctx))
	}
	if b.has(partCold) || b.has(partRest) {
		errs = append(errs, b.starting(ctx))
	}
	for _, err := range errs {
		if err != nil {
			b.note("not measured: %v", err)
		}
	}
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// busy is the load, in runnable tasks for each processor, from which on figures are not the
// sides' own.
const busy = 0.5

// quiet notes when it is not so.
func (b *bench) quiet() {
	if m := b.run.Machine; m.LoadStart > busy*float64(m.Cores) {
		b.note("the machine has other work, %.1f runnable tasks in the minute before: measure again when it has none", m.LoadStart)
	}
}

// changing measures changes of endpoints.
func (b *bench) changing(ctx context.Context) error {
	if err := b.fill(ctx, b.endpoints); err != nil {
		return err
	}
	for _, s := range b.stage.sides {
		b.progress("starting %s", s.name)
		if _, err := b.start(ctx, s); err != nil {
			return err
		}
	}
	var errs []error
	if b.has(partIdle) {
		errs = append(errs, b.changes(ctx, loadIdle))
	}
	if b.has(partLoaded) {
		errs = append(errs, b.changes(ctx, loadLoaded))
	}
	for _, s := range b.stage.sides {
		errs = append(errs, s.clear(ctx))
	}
	return errors.Join(errs...)
}

// starting measures cold starts, and then what the last ones keep and write.
func (b *bench) starting(ctx context.Context) error {
	if err := b.fill(ctx, b.most); err != nil {
		return err
	}
	return b.coldStarts(ctx)
}

func (b *bench) fill(ctx context.Context, endpoints int) error {
	b.progress("declaring %d Services with %d endpoints each", b.services, endpoints)
	begun := time.Now()
	if err := b.stage.fill(ctx, b.services, endpoints); err != nil {
		return fmt.Errorf("declare %d Services with %d endpoints each: %w", b.services, endpoints, err)
	}
	b.progress("declared in %.1f s", time.Since(begun).Seconds())
	return nil
}

// sample keeps figures of a side.
func (b *bench) sample(side, load string, round int, values map[string]float64) {
	b.run.Samples = append(b.run.Samples, record.Sample{
		Mode: side, Round: round, Values: values,
		Measurement: record.Measurement{Load: load, Path: onNode, Services: b.services},
	})
}

func (b *bench) note(format string, args ...any) {
	b.run.Notes = append(b.run.Notes, fmt.Sprintf(format, args...))
	b.progress(format, args...)
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(b.say, "%7.1fs  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}
