package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/slowpath/metrics"
	"lace-cni.io/lace/slowpath/publish"
)

// clocks notes what was measured.
type clocks struct {
	mu   sync.Mutex
	said []string
}

func (c *clocks) Applied(d time.Duration) { c.note("applied %v", d) }

func (c *clocks) EndpointsInUse(family string, d time.Duration) { c.note("%s %v", family, d) }

func (c *clocks) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func (c *clocks) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.said)
}

// TestPublicationsAreMeasuredWhenTheyAreInUse, by the moment that the fast path noted.
func TestPublicationsAreMeasuredWhenTheyAreInUse(t *testing.T) {
	s := newScene(t)
	counters := s.fastpath(6, 0)
	var c clocks
	a := newApplied(s.config.path("counters"), &c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.run(ctx) }()
	defer func() { cancel(); <-done }()

	began := time.Unix(1_700_000_000, 0)
	a.written(publish.Publication{Generation: 7, Began: began, Endpoints: []publish.Trigger{
		{Family: "IPv4", At: began.Add(-2 * time.Second)}, {Family: "IPv6", At: began.Add(time.Hour)}, // a clock that is ahead
	}})
	a.written(publish.Publication{Generation: 8, Began: began.Add(time.Second)})
	a.look()
	if got := c.all(); len(got) > 0 || !a.at().IsZero() {
		t.Fatalf("%v before anything was in use", got)
	}
	use := func(generation uint64, at time.Time) {
		counters.Set(counter.InUseSince, uint64(at.UnixNano()))
		counters.Set(counter.Generation, generation)
	}
	says := func(want ...string) {
		t.Helper()
		eventually(t, "it is measured", func() error {
			if got := c.all(); !slices.Equal(got, want) {
				return fmt.Errorf("%q, want %q", got, want)
			}
			return nil
		})
	}
	use(7, began.Add(3*time.Millisecond))
	says("applied 3ms", "IPv4 2.003s", "IPv6 0s")
	use(9, began.Add(2*time.Second)) // of another agent before this one
	says("applied 3ms", "IPv4 2.003s", "IPv6 0s", "applied 1s")
	if got := a.at(); !got.Equal(began.Add(2 * time.Second)) {
		t.Errorf("in use since %v", got)
	}
	if oldest := a.look(); !oldest.IsZero() {
		t.Errorf("something of %v waits still", oldest)
	}
}

// TestAFastPathThatIsAwayCostsBoundedMemory, however much is published meanwhile.
func TestAFastPathThatIsAwayCostsBoundedMemory(t *testing.T) {
	var c clocks
	a := newApplied(t.TempDir()+"/counters", &c)
	for i := range 3 * maxWaiting {
		a.written(publish.Publication{Generation: uint64(i + 1), Endpoints: make([]publish.Trigger, 100)})
	}
	if len(a.waiting) != maxWaiting || a.held > maxTriggers {
		t.Errorf("%d publications with %d changes wait, want at most %d with %d", len(a.waiting), a.held, maxWaiting, maxTriggers)
	}
	a.measure(1<<40, time.Now())
	if len(a.waiting) != 0 || a.held != 0 {
		t.Errorf("%d publications with %d changes wait still", len(a.waiting), a.held)
	}
}

// TestWithoutLocal counts what drops under a Local policy, and nothing that refuses.
func TestWithoutLocal(t *testing.T) {
	some := model.Choice{Any: true, Endpoints: []model.Endpoint{{}}}
	elsewhere, nowhere := model.Choice{Any: true}, model.Choice{}
	port := func(internal, external model.Choice) model.ServicePort {
		return model.ServicePort{Families: map[int]model.FamilyChoice{4: {Internal: internal, External: external}, 6: {Internal: elsewhere, External: nowhere}}}
	}
	local := &model.Service{InternalPolicy: model.PolicyLocal, ExternalPolicy: model.PolicyLocal, Ports: []model.ServicePort{
		port(elsewhere, elsewhere), port(elsewhere, some), port(nowhere, nowhere),
	}}
	cluster := &model.Service{Ports: []model.ServicePort{port(elsewhere, elsewhere)}}
	want := [2]metrics.WithoutLocal{{Internal: 2, External: 1}, {Internal: 3}}
	if got := withoutLocal([]*model.Service{local, cluster}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
