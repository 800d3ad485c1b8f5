package worker

import "time"

const (
	// tour is how long one walk through the whole flow table takes: an expired flow is
	// collected that much later at most.
	tour = int64(5 * time.Second)
	// portion is the least that is walked at once; smaller ones cost more than they do.
	portion = 256
	// backlog bounds what is made up for after a long pause.
	backlog = int64(time.Second)
)

// sweep spreads the walk through the flow table evenly over time.
type sweep struct {
	slots int
	last  int64 // up to when slots have been handed out
}

// due is how many slots to walk through at now; 0: not yet.
func (s *sweep) due(now int64) int {
	if s.slots == 0 {
		return 0
	}
	passed := min(now-s.last, backlog)
	n := int(int64(s.slots) * passed / tour)
	if n < min(portion, s.slots) && passed < backlog {
		return 0
	}
	s.last = now
	return n
}
