package agent

import (
	"context"
	"sync"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/slowpath/metrics"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

// How often is looked whether a publication is in use, while one is not: soon at first, for
// it takes milliseconds, and seldom when the fast path is away.
const (
	lookSoon    = 5 * time.Millisecond
	lookSeldom  = 500 * time.Millisecond
	soonFor     = time.Second
	maxWaiting  = 4096    // publications that wait to be in use; beyond, the oldest is not measured
	maxTriggers = 1 << 16 // changes of endpoints in them; beyond, the newest are not measured
)

// latencies is who is told how long things took.
type latencies interface {
	Applied(time.Duration)
	EndpointsInUse(family string, d time.Duration)
}

// applied measures how long publications take until the fast path uses them. It costs
// nothing while all are in use.
type applied struct {
	counters string // the file
	to       latencies
	wake     bell

	mu      sync.Mutex
	waiting []publish.Publication // by generation
	held    int                   // changes of endpoints in them
	last    time.Time             // when the newest one in use came into use
}

func newApplied(counters string, to latencies) *applied {
	return &applied{counters: counters, to: to, wake: newBell()}
}

// written takes a publication, in the order of their generations.
func (a *applied) written(p publish.Publication) {
	a.mu.Lock()
	p.Endpoints = p.Endpoints[:min(len(p.Endpoints), maxTriggers-a.held)]
	a.held += len(p.Endpoints)
	a.waiting = append(a.waiting, p)
	if len(a.waiting) > maxWaiting {
		a.next()
	}
	a.mu.Unlock()
	a.wake.ring()
}

// at is when the newest publication that is in use came into use; zero: none yet.
func (a *applied) at() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// run looks until ctx ends.
func (a *applied) run(ctx context.Context) error {
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	for {
		if oldest := a.look(); !oldest.IsZero() {
			pause := lookSoon
			if time.Since(oldest) > soonFor {
				pause = lookSeldom
			}
			again.Reset(pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
		case <-again.C:
		}
	}
}

// look measures what is in use now, and returns when the oldest began that is not; zero:
// none waits.
func (a *applied) look() (oldest time.Time) {
	a.mu.Lock()
	idle := len(a.waiting) == 0
	a.mu.Unlock()
	if idle {
		return time.Time{}
	}
	totals, _ := readTotals(a.counters)
	a.mu.Lock()
	defer a.mu.Unlock()
	if totals != nil {
		a.measure(totals.Gauges[counter.Generation], time.Unix(0, int64(totals.Gauges[counter.InUseSince])))
	}
	if len(a.waiting) == 0 {
		return time.Time{}
	}
	return a.waiting[0].Began
}

// next takes out the oldest publication.
func (a *applied) next() publish.Publication {
	p := a.waiting[0]
	a.waiting = a.waiting[1:]
	a.held -= len(p.Endpoints)
	return p
}

// measure takes out what the generation in use includes.
func (a *applied) measure(generation uint64, since time.Time) {
	for len(a.waiting) > 0 && a.waiting[0].Generation <= generation {
		p := a.next()
		a.last = since
		a.to.Applied(max(0, since.Sub(p.Began)))
		for _, t := range p.Endpoints {
			a.to.EndpointsInUse(t.Family, max(0, since.Sub(t.At)))
		}
	}
}

// changes are what came from the source, and what of it waits.
func (o *observer) changes() metrics.Changes {
	passed := o.tally.read().changes
	c := metrics.Changes{
		Services: passed[source.Service], Slices: passed[source.EndpointSlice],
		ServicesPending: o.publisher.Pending(source.Service), SlicesPending: o.publisher.Pending(source.EndpointSlice),
		Queued: o.publisher.LastQueued(),
	}
	if o.applied != nil {
		c.Applied = o.applied.at()
	}
	return c
}

// withoutLocal counts, by family, the Service ports that drop for want of an endpoint on
// this node while there are some elsewhere.
func withoutLocal(services []*model.Service) (out [2]metrics.WithoutLocal) {
	drops := func(p model.Policy, c *model.Choice) bool {
		return p == model.PolicyLocal && c.Any && len(c.Endpoints) == 0
	}
	for _, s := range services {
		for i := range s.Ports {
			for f, c := range s.Ports[i].Families {
				of := &out[0]
				if f == 6 {
					of = &out[1]
				}
				if drops(s.InternalPolicy, &c.Internal) {
					of.Internal++
				}
				if drops(s.ExternalPolicy, &c.External) {
					of.External++
				}
			}
		}
	}
	return out
}
