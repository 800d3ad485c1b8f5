package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// coldStarts measures starts on a node where nothing was, the sides taking turns, and what
// each keeps after its last one.
func (b *bench) coldStarts(ctx context.Context) error {
	var errs []error
	for round := range b.starts {
		for _, s := range b.stage.turn(round) {
			err := b.coldStart(ctx, s, round)
			if err == nil && round == b.starts-1 {
				err = b.kept(ctx, s)
			}
			errs = append(errs, err, s.clear(context.WithoutCancel(ctx)))
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
	}
	return errors.Join(errs...)
}

func (b *bench) coldStart(ctx context.Context, s *side, round int) error {
	v, err := b.start(ctx, s)
	if err != nil {
		return fmt.Errorf("cold start %d of %s: %w", round+1, s.name, err)
	}
	b.sample(s.name, loadCold, round, v)
	b.progress("cold start %d of %d: %s, first packet after %.2f s, complete after %.2f s", round+1, b.starts, s.name, v["first"], v["complete"])
	return nil
}

// start starts a side and returns how long it takes until a packet through a Service is
// answered, and until everything is in force, in seconds.
func (b *bench) start(ctx context.Context, s *side) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	begun := time.Now()
	first := make(chan result, 1)
	go func() {
		at, err := await(ctx, s.client, s.first[0], "")
		first <- result{at, err}
	}()
	if err := s.start(ctx); err != nil {
		cancel()
		<-first
		return nil, err
	}
	f := <-first
	if f.err != nil {
		return nil, fmt.Errorf("the first packet: %w", f.err)
	}
	whole, err := s.complete(ctx, b.services+b.stage.own())
	if err != nil {
		return nil, err
	}
	return map[string]float64{"first": f.at.Sub(begun).Seconds(), "complete": whole.Sub(begun).Seconds()}, nil
}

// result is when something came about.
type result struct {
	at  time.Time
	err error
}

// complete waits until every Service that answers has answered and the side says that all is
// in force, and returns since when.
func (s *side) complete(ctx context.Context, services int) (at time.Time, err error) {
	for _, to := range append([]netip.AddrPort{s.probe}, s.first...) {
		if _, err := await(ctx, s.client, to, ""); err != nil {
			return at, err
		}
	}
	for {
		at = time.Now()
		if err = s.runs.complete(ctx, services); err == nil {
			return at, nil
		}
		// The look itself must not be what takes time.
		rest(ctx, max(5*time.Millisecond, 4*time.Since(at)))
		if ctx.Err() != nil {
			return at, fmt.Errorf("not complete: %w: %w", context.Cause(ctx), err)
		}
	}
}

// own is how many Services the sides have beside the crowd.
func (s *stage) own() int { return len(s.sides) * (firsts + 2) }
