package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lace-cni.io/lace/bench/cluster"
)

// settling is how long after a start its memory is looked at: what the start took has been
// given back by then.
const settling = 10 * time.Second

// kept measures what a side has in memory after a start, and of Lace's agent what it writes
// at rest.
func (b *bench) kept(ctx context.Context, s *side) error {
	if !b.has(partRest) {
		return nil
	}
	rest(ctx, min(settling, b.rest))
	v, err := s.memory()
	if err != nil {
		return err
	}
	b.sample(s.name, loadMemory, 0, v)
	if s.runs.control() != cluster.RoleLaceAgent {
		return nil
	}
	b.progress("at rest for %s", b.rest)
	before, err := b.writes()
	if err != nil {
		return err
	}
	rest(ctx, b.rest)
	after, err := b.writes()
	if err != nil {
		return err
	}
	b.sample(s.name, loadRest, 0, map[string]float64{"writes": float64(after - before), "seconds": b.rest.Seconds()})
	return nil
}

// memory of each program of a side, with its peak, and of the BPF maps that it holds, in MiB.
func (s *side) memory() (map[string]float64, error) {
	v := map[string]float64{}
	for _, program := range s.runs.programs() {
		pid, err := s.process(program)
		if err != nil {
			return nil, err
		}
		m, err := memoryOf(pid)
		if err != nil {
			return nil, err
		}
		v[program], v[program+"-mapped"], v[program+"-peak"] = m.own, m.mapped, m.peak
		if v[program+"-maps"], err = maps(pid); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// writes counts what agents have asked the API for but to read, their Leases left out.
func (b *bench) writes() (n int, err error) {
	asked, err := b.stage.Audit()
	if err != nil {
		return 0, err
	}
	if len(asked) == 0 {
		return 0, fmt.Errorf("the audit of the API has seen nothing of %s", cluster.AgentUser)
	}
	for _, a := range asked {
		if !slices.Contains([]string{"get", "list", "watch"}, a.Verb) && a.ObjectRef.Resource != "leases" {
			n++
		}
	}
	return n, nil
}
