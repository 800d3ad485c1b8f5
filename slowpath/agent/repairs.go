package agent

import (
	"maps"
	"sync"

	"lace-cni.io/lace/fastpath/counter"
)

// What the agent puts right, in the words of the metric.
const (
	repairRoute    = "route"
	repairSnapshot = "snapshot"
	repairSocket   = "admin-socket"
)

// repairs counts what somebody took away or changed under this agent and was put right.
// Safe for concurrent use.
type repairs struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func newRepairs() *repairs {
	return &repairs{counts: map[string]uint64{repairRoute: 0, repairSnapshot: 0, repairSocket: 0}}
}

// note gives a function that counts one kind.
func (r *repairs) note(what string) func() {
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.counts[what]++
	}
}

// with are the counts of both processes, each since it began.
func (r *repairs) with(t *counter.Totals) map[string]uint64 {
	r.mu.Lock()
	all := maps.Clone(r.counts)
	r.mu.Unlock()
	if t == nil {
		return all
	}
	for what := range counter.Repairs {
		all[what.String()] = t.Gauges[what.Gauge()]
	}
	return all
}
