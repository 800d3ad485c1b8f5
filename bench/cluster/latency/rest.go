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

// churn is how many changes of endpoints a side has seen when its memory is looked at again:
// what is kept must not depend on how long nothing has happened.
const churn = 200

// kept measures what a side has in memory after a start, what Lace's agent writes at rest,
// and what is in memory after changes.
func (b *bench) kept(ctx context.Context, s *side) error {
	if !b.has(partRest) {
		return nil
	}
	rest(ctx, min(settling, b.rest))
	v, err := s.memory()
	if err != nil {
		return err
	}
	if s.runs.control() == cluster.RoleLaceAgent {
		if err := b.restful(ctx, s); err != nil {
			return err
		}
	}
	b.progress("%d changes of endpoints, for %s", churn, s.name)
	if err := b.stage.churn(ctx, b.services, b.most); err != nil {
		return err
	}
	rest(ctx, min(settling, b.rest))
	after, err := s.memory()
	for program, n := range after {
		v[program+"-changed"] = n
	}
	b.sample(s.name, loadMemory, 0, v)
	return err
}

// restful counts what the agent writes while nothing changes.
func (b *bench) restful(ctx context.Context, s *side) error {
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

// churn takes the last endpoint from Services, one after another, and gives it back.
func (s *stage) churn(ctx context.Context, services, endpoints int) error {
	for i := range churn {
		e := crowd(i/2%services, endpoints-(i+1)%2)
		if err := s.API.Put(ctx, cluster.Slices+"/"+e.Name, e, nil); err != nil {
			return err
		}
	}
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
