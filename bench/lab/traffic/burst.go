package traffic

import (
	"context"
	"sync"
	"time"
)

// Burst is many attempts of the same Request.
type Burst struct {
	Request
	Count    int           // attempts; 0 with a Rate: until stopped
	Parallel int           // at a time; 0: 8
	Every    time.Duration // start one attempt each Every; 0: as fast as Parallel allows
}

// Tally sums up the answers of a burst.
type Tally struct {
	Attempts int
	Outcomes map[Outcome]int
	Servers  map[string]int // of the OK ones
	Slowest  time.Duration  // of the OK ones
	Took     time.Duration
	First    string // text of the first failure
}

// Failed is the number of attempts that were not answered.
func (t Tally) Failed() int { return t.Attempts - t.Outcomes[OK] }

// Add counts one answer.
func (t *Tally) Add(a Answer) {
	if t.Outcomes == nil {
		t.Outcomes, t.Servers = map[Outcome]int{}, map[string]int{}
	}
	t.Attempts++
	t.Outcomes[a.Outcome]++
	if a.Outcome != OK {
		if t.First == "" {
			t.First = a.String()
		}
		return
	}
	t.Servers[a.Server]++
	t.Slowest = max(t.Slowest, a.Took)
}

// Run makes the attempts with ordinary sockets and hands each answer to each, from several
// goroutines but never at the same time. It returns when all are decided or ctx ends.
func (b Burst) Run(ctx context.Context, each func(Answer)) { b.RunBy(ctx, Sockets, each) }

// RunBy is Run over another kind of connection.
func (b Burst) RunBy(ctx context.Context, connect Connect, each func(Answer)) {
	parallel := b.Parallel
	if parallel == 0 {
		parallel = 8
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, parallel)
	var tick <-chan time.Time
	if b.Every > 0 {
		t := time.NewTicker(b.Every)
		defer t.Stop()
		tick = t.C
	}
	for i := 0; (b.Count == 0 || i < b.Count) && ctx.Err() == nil; i++ {
		if tick != nil {
			select {
			case <-tick:
			case <-ctx.Done():
			}
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		wg.Go(func() {
			a := DialBy(ctx, connect, b.Request)
			<-room
			if ctx.Err() != nil && a.Outcome != OK {
				return // cut short by us, says nothing about the network
			}
			mu.Lock()
			defer mu.Unlock()
			each(a)
		})
	}
	wg.Wait()
}

// Merge adds another tally to this one.
func (t *Tally) Merge(o Tally) {
	if t.Outcomes == nil {
		t.Outcomes, t.Servers = map[Outcome]int{}, map[string]int{}
	}
	t.Attempts += o.Attempts
	for k, n := range o.Outcomes {
		t.Outcomes[k] += n
	}
	for k, n := range o.Servers {
		t.Servers[k] += n
	}
	t.Slowest, t.Took = max(t.Slowest, o.Slowest), max(t.Took, o.Took)
	if t.First == "" {
		t.First = o.First
	}
}
