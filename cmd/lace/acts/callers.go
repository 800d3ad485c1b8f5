package acts

import (
	"context"
	"sync"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
)

const (
	// burstEvery and burstSize make the pace of each client over each family.
	burstEvery = 250 * time.Millisecond
	burstSize  = 8
	// callPatience is how long one call waits. Calls that wait delay the next burst of
	// their own client and nothing else.
	callPatience = time.Second
)

// callers make connections from every client over both families until their context ends.
// Whoever looks takes what has come to an end since he looked last.
type callers struct {
	mu      sync.Mutex
	tallies map[int]traffic.Tally // by family
}

// callAll starts the calls and does not wait for any of them.
func callAll(ctx context.Context, s Stage) *callers {
	c := &callers{tallies: map[int]traffic.Tally{}}
	for _, client := range s.Clients() {
		for _, family := range []int{4, 6} {
			go c.call(ctx, &scene{Stage: s, family: family}, client.Name)
		}
	}
	return c
}

func (c *callers) call(ctx context.Context, s *scene, client string) {
	request := s.call("tcp")
	request.Timeout = callPatience
	b := traffic.Burst{Request: request, Count: burstSize, Parallel: burstSize, Every: burstEvery / burstSize}
	for ctx.Err() == nil {
		next := time.Now().Add(burstEvery)
		t, err := s.Burst(ctx, client, b)
		if ctx.Err() != nil {
			return // cut short, says nothing about the network
		}
		if err != nil {
			t = traffic.Tally{First: err.Error()}
		}
		c.add(s.family, t)
		_ = pause(ctx, time.Until(next))
	}
}

func (c *callers) add(family int, t traffic.Tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.tallies[family]
	sum.Merge(t)
	c.tallies[family] = sum
}

// take hands over what came to an end over a family since it was taken last.
func (c *callers) take(family int) traffic.Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tallies[family]
	delete(c.tallies, family)
	return t
}
