package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/suite/stats"
)

// jitter is the most that is added to a pause at random, so that no change keeps step with
// what the sides do by the clock.
const jitter = 500 * time.Millisecond

// changes measures all changes of one load, the sides taking turns.
func (b *bench) changes(ctx context.Context, load string) error {
	var floods map[*side]*flood
	if load == loadLoaded {
		var err error
		floods, err = b.openFloods(ctx)
		defer func() {
			for _, f := range floods {
				f.Close()
			}
		}()
		if err != nil {
			return err
		}
	}
	of := map[*side]*taken{}
	for round := range b.options.changes {
		for _, s := range b.stage.turn(round) {
			t, err := b.turn(ctx, s, floods[s])
			if errors.Is(err, errNoLoad) {
				b.note("change %d of %s, %s, was measured again: %v", round+1, s.name, load, err)
				t, err = b.turn(ctx, s, floods[s])
			}
			if err != nil {
				return fmt.Errorf("change %d of %s, %s: %w", round+1, s.name, load, err)
			}
			b.sample(s.name, load, round, t.values())
			if of[s] == nil {
				of[s] = &taken{}
			}
			of[s].add(t)
		}
		b.progress("%s, change %d of %d: lace %s, kube-proxy %s", load, round+1, b.options.changes, of[b.stage.sides[0]], of[b.stage.sides[1]])
	}
	for _, s := range b.stage.sides {
		b.sample(s.name, load, 0, of[s].summary())
	}
	return nil
}

// turned is one change.
type turned struct {
	took  time.Duration // from before the request until the answer of the new endpoint
	write time.Duration // of it the request's own
	rate  float64       // packets a second of the flood that arrived
}

func (t turned) values() map[string]float64 {
	v := map[string]float64{"ms": milliseconds(t.took), "write-ms": milliseconds(t.write)}
	if t.rate > 0 {
		v["load-mpps"] = t.rate / 1e6
	}
	return v
}

// turn measures one change of a side while the others are halted.
func (b *bench) turn(ctx context.Context, s *side, f *flood) (t turned, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit+b.pause+jitter)
	defer cancel()
	rest(ctx, b.pause+rand.N(min(jitter, b.pause)+1))
	for _, other := range b.stage.sides {
		if other == s {
			continue
		}
		if err := other.halt(); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, other.resume()) }()
	}
	if f != nil {
		if err := f.begin(ctx); err != nil {
			return t, err
		}
		defer func() {
			var over error
			t.rate, over = f.over()
			err = errors.Join(err, over)
		}()
		rest(ctx, floodFirst)
	}
	t.took, t.write, err = b.stage.change(ctx, s)
	return t, err
}

// rest waits, or returns when ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// change moves the endpoint of a side's probe and waits until a packet is answered by the
// new one.
func (s *stage) change(ctx context.Context, d *side) (took, write time.Duration, err error) {
	next := 1 - d.now
	type answered struct {
		at  time.Time
		err error
	}
	done := make(chan answered, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		at, err := await(ctx, d.client, d.probe, d.at[next].String())
		done <- answered{at, err}
	}()
	e := slice(d.probeName(), corev1.ProtocolUDP, targetPort)
	e.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{d.at[next].String()}}}
	begun := time.Now()
	if err = s.API.Put(ctx, cluster.Slices+"/"+e.Name, e, nil); err != nil {
		cancel()
	}
	write = time.Since(begun)
	a := <-done
	if err == nil {
		err = a.err
	}
	d.now = next
	return a.at.Sub(begun), write, err
}

// taken are the times of a side's changes, in milliseconds.
type taken struct{ took, write, rate []float64 }

func (t *taken) add(c turned) {
	t.took, t.write = append(t.took, milliseconds(c.took)), append(t.write, milliseconds(c.write))
	if c.rate > 0 {
		t.rate = append(t.rate, c.rate/1e6)
	}
}

// String is the last one, for progress.
func (t *taken) String() string { return fmt.Sprintf("%.1f ms", t.took[len(t.took)-1]) }

func (t *taken) summary() map[string]float64 {
	v := map[string]float64{
		"p50": stats.Median(t.took), "p99": percentile(t.took, 99), "slowest": slices.Max(t.took),
		"changes": float64(len(t.took)), "write-p50": stats.Median(t.write), "write-p99": percentile(t.write, 99),
	}
	if len(t.rate) > 0 {
		v["load-p50"] = stats.Median(t.rate)
	}
	return v
}

// percentile is the nearest rank: of fewer than a hundred values the 99th is the highest.
func percentile(v []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[int(math.Ceil(p/100*float64(len(s))))-1]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
