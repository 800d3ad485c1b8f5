package health

import "time"

// Patience is how long a change may wait before the node is unhealthy: twice the
// 30 s in which kube-proxy repeats itself.
const Patience = 60 * time.Second

// ToBeDeletedTaint is the taint by which the cluster autoscaler announces that it is
// about to remove a node (KEP-3836).
const ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"

// State is what the answers follow from.
type State struct {
	// Updated is when a publication last ended; zero before the first.
	Updated time.Time
	// Queued is when the oldest change came that is not published yet; zero: none.
	Queued time.Time
	// Unapplied is since when the last snapshot has not been in use by the fast path;
	// zero: it is in use, or there is none.
	Unapplied time.Time
	// Eligible: the Node object is known, is not being deleted and does not bear
	// ToBeDeletedTaint.
	Eligible bool
}

// publishes reports whether the agent does its work.
func (s *State) publishes(now time.Time) bool { return within(s.Queued, now) }

// applies reports whether what the agent published is in use.
func (s *State) applies(now time.Time) bool { return within(s.Unapplied, now) }

func within(since, now time.Time) bool {
	return since.IsZero() || now.Sub(since) <= Patience
}
