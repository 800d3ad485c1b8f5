package police

import (
	"sync"
	"sync/atomic"
)

const (
	// DefaultRate and DefaultBurst are what every port may always ask, whatever others do:
	// a thirtieth of what one worker decides on an ordinary core, for each kind.
	DefaultRate  = 10_000
	DefaultBurst = 256

	// least is the time between two steps down, and between a step and the next up:
	// shorter than a ring takes to fill, longer than a batch takes.
	least = int64(1e6)
	calm  = int64(5e6)
)

// Governor follows the rings of all workers. Any number of them may call Note.
type Governor struct {
	apply func(Limits)

	quiet atomic.Bool  // nothing is limited
	next  atomic.Int64 // when to look again, nanoseconds

	mu     sync.Mutex
	limits Limits
	valves [Asks]valve
}

// NewGovernor makes one. rate and burst are what every port may always ask; apply is told
// every change, one at a time, and must not call back.
func NewGovernor(rate, burst uint32, apply func(Limits)) *Governor {
	g := &Governor{apply: apply, limits: Limits{Burst: burst}}
	g.valves = [Asks]valve{
		New:   {mark: 1.0 / 8, floor: rate},
		Flow:  {mark: 7.0 / 8, floor: 4 * rate},
		Again: {mark: 1.0 / 2, floor: rate},
	}
	g.quiet.Store(true)
	return g
}

// Note tells the state of one worker's receive ring at now, in nanoseconds of a clock that
// never goes back: how many frames wait in it, and how many it holds.
func (g *Governor) Note(now int64, waiting, room int) {
	if g == nil {
		return
	}
	full := float64(waiting) / float64(max(room, 1))
	if full < g.valves[New].mark && g.quiet.Load() || now < g.next.Load() {
		return
	}
	if !g.mu.TryLock() {
		return // another worker is at it
	}
	defer g.mu.Unlock()
	g.step(now, full)
}

func (g *Governor) step(now int64, full float64) {
	g.next.Store(now + least)
	changed := false
	for ask := range g.valves {
		v := &g.valves[ask]
		if v.step(now, full) {
			g.limits.PerSecond[ask] = v.limit
			changed = true
		}
	}
	if changed {
		g.quiet.Store(g.limits.Any() == 0)
		g.apply(g.limits)
	}
}

// Limits are those in force.
func (g *Governor) Limits() Limits {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limits
}
