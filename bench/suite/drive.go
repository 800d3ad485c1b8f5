package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"lace-cni.io/lace/bench/load"
	"lace-cni.io/lace/bench/suite/measure"
	"lace-cni.io/lace/bench/suite/plan"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/rig"
)

// driver carries a plan out.
type driver struct {
	plan   *plan.Plan
	steps  []plan.Step
	rigs   map[plan.Place]*rig.Rig
	run    *record.Run
	cpu    int // where closed loops run
	say    io.Writer
	begun  time.Time
	broken []string // measurements and modes that failed, and why
	slack  time.Duration
}

func newDriver(p *plan.Plan, say io.Writer) (*driver, error) {
	steps, skips, err := p.Steps()
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, errors.New("nothing is left to measure: name fewer restrictions")
	}
	return &driver{
		plan: p, steps: steps, rigs: map[plan.Place]*rig.Rig{}, say: say, begun: time.Now(), slack: slack,
		cpu: runtime.NumCPU() - 1, // the first has most of the machine's interrupts
		run: &record.Run{
			Layout: record.Layout, Kind: p.Kind, Started: time.Now().UTC(),
			Machine: record.ThisMachine(), Generator: map[string]float64{}, Asked: plan.Asked(steps), Skipped: skips,
		},
	}, nil
}

// measure builds the rigs and goes round and round until the plan or the time is over.
func (d *driver) measure(ctx context.Context) error {
	defer d.close()
	if err := d.build(ctx); err != nil {
		return err
	}
	if err := d.ceiling(ctx); err != nil {
		return err
	}
	if d.plan.WarmUp {
		d.round(ctx, -1)
	}
	var longest time.Duration
	for i := 0; i < d.plan.Rounds && ctx.Err() == nil; i++ {
		if left := d.plan.Budget - time.Since(d.begun); i > 0 && left < longest {
			d.note("stopped after %d of %d rounds: another one would not end within %s", i, d.plan.Rounds, d.plan.Budget)
			break
		}
		start := time.Now()
		if d.round(ctx, i) {
			d.run.Rounds++
		}
		longest = max(longest, time.Since(start))
	}
	d.run.Seconds = time.Since(d.begun).Seconds()
	d.run.Machine.LoadEnd = record.LoadAverage()
	d.judgeLane()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if d.run.Rounds == 0 {
		return errors.New("no round was completed")
	}
	return nil
}

// why says in one line why a run was not completed.
func (d *driver) why(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case len(d.run.Samples) == 0:
		return errors.New("stopped before anything was measured")
	}
	return fmt.Errorf("stopped after %d of %d rounds", d.run.Rounds, d.plan.Rounds)
}

// build opens every rig. One that lacks a tool is skipped; one that fails is an error of the
// run, which goes on with the others.
func (d *driver) build(ctx context.Context) error {
	for _, place := range plan.Rigs(d.steps) {
		if err := ctx.Err(); err != nil {
			return err
		}
		mode, err := rig.Find(place.Mode)
		if err != nil {
			return err
		}
		d.progress("building %s with %d services", place.Mode, place.Services)
		r, err := rig.Open(ctx, rig.Config{Mode: mode, Services: place.Services, FlowSlots: d.plan.FlowSlots})
		if err != nil {
			d.skip(place, err)
			continue
		}
		d.rigs[place] = r
		d.run.Modes = append(d.run.Modes, record.Mode{Name: mode.Name, What: mode.What, Services: place.Services, SetupSeconds: r.Setup.Seconds()})
	}
	if len(d.rigs) == 0 {
		return errors.New("no mode could be built")
	}
	return nil
}

func (d *driver) skip(p plan.Place, err error) {
	if !errors.Is(err, rig.ErrMissing) {
		d.broken = append(d.broken, err.Error())
	}
	d.run.Skipped = append(d.run.Skipped, record.Skip{What: fmt.Sprintf("%s with %d services", p.Mode, p.Services), Why: err.Error()})
	d.progress("skipped: %v", err)
}

// enough time for the generator alone, whose figure hardly varies.
const enough = 500 * time.Millisecond

// ceiling measures the generator alone, in any rig.
func (d *driver) ceiling(ctx context.Context) error {
	for _, r := range d.rigs {
		c, err := load.Ceiling(ctx, r.Space("outside"), d.cpu, min(d.plan.Times.For, enough))
		if err != nil {
			return fmt.Errorf("the generator alone: %w", err)
		}
		d.run.Generator["frames-ns"] = c.PerPacket()
		return nil
	}
	return nil
}

// round takes every step at all of its places, and reports whether it was completed. One
// with a negative number is not recorded.
func (d *driver) round(ctx context.Context, number int) bool {
	for i := range d.steps {
		s := &d.steps[i]
		for _, place := range s.Turn(max(number, 0)) {
			if ctx.Err() != nil {
				return false
			}
			if r := d.rigs[place]; r != nil {
				d.take(ctx, s, place, r, number)
			}
		}
	}
	return true
}

func (d *driver) take(ctx context.Context, s *plan.Step, place plan.Place, r *rig.Rig, number int) {
	times := d.plan.Times
	if number < 0 {
		times.Warm, times.For = times.Warm/4, times.For/4
	}
	sample := record.Sample{
		Mode: place.Mode, Round: number,
		Measurement: record.Measurement{Load: s.Load.Name, Path: string(s.Path), Services: place.Services},
	}
	d.progress("measuring %s, %s", sample.Measurement, place.Mode)
	values, err := d.attempt(ctx, place, func(ctx context.Context) (measure.Values, error) {
		return s.Load.Run(ctx, r, s.Path, d.cpu, times)
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.broken = append(d.broken, err.Error())
		sample.Error = err.Error()
		d.note("%v", err)
	}
	if number < 0 {
		return
	}
	sample.Values = values
	d.run.Samples = append(d.run.Samples, sample)
	if err == nil {
		d.progress("round %d of %d: %s, %s: %.4g %s", number+1, d.plan.Rounds, sample.Measurement, place.Mode, values[s.Load.Field], s.Load.Unit)
	}
}

// attempt measures, and once more when that failed: one moment in which the machine did
// something else is no finding. The first failure is kept among the notes.
func (d *driver) attempt(ctx context.Context, place plan.Place, run func(context.Context) (measure.Values, error)) (measure.Values, error) {
	values, err := d.within(ctx, place, run)
	if err == nil || ctx.Err() != nil || d.rigs[place] == nil {
		return values, err
	}
	d.note("measured again, for at first: %v", err)
	return d.within(ctx, place, run)
}

// judgeLane says so when established packets went through Go though the lane was on: the
// figures are then not those of the lane.
func (d *driver) judgeLane() {
	for _, s := range d.run.Samples {
		mode, err := rig.Find(s.Mode)
		if err != nil || mode.Lane != "on" || s.Load != "udp-frames" || s.Round != 0 {
			continue
		}
		if p := s.Values["punted"]; p > 0.05 {
			d.note("%s: the lane is on, and %.0f %% of the packets of established flows went through Go (%s)", s.Mode, 100*p, s.Measurement)
		}
	}
}

// close ends all rigs at once, but for those in which something hangs: these end with the
// process.
func (d *driver) close() {
	var all sync.WaitGroup
	errs := make(map[plan.Place]*error, len(d.rigs))
	for place, r := range d.rigs {
		err := new(error)
		errs[place] = err
		all.Go(func() { *err = r.Close() })
	}
	all.Wait()
	for place, err := range errs {
		if *err != nil {
			d.note("closing %s: %v", place.Mode, *err)
		}
	}
}

func (d *driver) note(format string, args ...any) {
	d.run.Notes = append(d.run.Notes, fmt.Sprintf(format, args...))
	d.progress(format, args...)
}

func (d *driver) progress(format string, args ...any) {
	fmt.Fprintf(d.say, "%7.1fs  %s\n", time.Since(d.begun).Seconds(), fmt.Sprintf(format, args...))
}
