package health

import "time"

// Patience is how long a change may wait before the node is unhealthy: twice the
// 30 s in which kube-proxy repeats itself.
const Patience = 60 * time.Second

// ToBeDeletedTaint is the taint by which the cluster autoscaler announces that it is
// about to remove a node (KEP-3836).
const ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"

// Grace is how long the fast path may be down before the node is unhealthy: it is back
// within a fraction of a second when it is started again.
const Grace = 5 * time.Second

// State is what the answers follow from.
type State struct {
	// Updated is when a publication last ended; zero before the first.
	Updated time.Time
	// Queued is when the oldest change came that is not published yet; zero: none.
	Queued time.Time
	// Unapplied is since when the last snapshot has not been in use by the fast path;
	// zero: it is in use, or there is none.
	Unapplied time.Time
	// Down is since when the fast path has not been running; zero: it runs.
	Down time.Time
	// Eligible: the Node object is known, is not being deleted and does not bear
	// ToBeDeletedTaint.
	Eligible bool
}

// Works reports whether this node's Lace does its work, whatever its Node object says.
func (s *State) Works(now time.Time) bool {
	return s.publishes(now) && s.applies(now) && s.carries(now)
}

// publishes reports whether the agent does its work.
func (s *State) publishes(now time.Time) bool { return within(Patience, s.Queued, now) }

// applies reports whether what the agent published is in use.
func (s *State) applies(now time.Time) bool { return within(Patience, s.Unapplied, now) }

// carries reports whether new connections are carried.
func (s *State) carries(now time.Time) bool { return within(Grace, s.Down, now) }

func within(bound time.Duration, since, now time.Time) bool {
	return since.IsZero() || now.Sub(since) <= bound
}

// Check is one of the things that an answer follows from, and whether it holds.
type Check struct {
	Name  string
	Holds bool
}

// Names of the checks.
const (
	CheckPublishing = "publishing"    // changes are published
	CheckInUse      = "tables-in-use" // the fast path uses what was published
	CheckFastpath   = "fastpath"      // it runs
	CheckNode       = "node-eligible" // the Node object is one that may get traffic
)

// checks are all of them; the first is that of the agent alone.
func (s *State) checks(now time.Time) []Check {
	return []Check{
		{CheckPublishing, s.publishes(now)}, {CheckInUse, s.applies(now)},
		{CheckFastpath, s.carries(now)}, {CheckNode, s.Eligible},
	}
}
