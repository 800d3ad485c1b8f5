package pipeline

import (
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/table"
)

// Expire looks at up to budget slots of the flow table, from where the last call
// stopped, and removes the flows that have been idle for too long or whose frontend is
// gone. It returns how many flows it removed. Without tables nothing is removed: what
// a restarted process finds stays until it knows better. now as for Process.
func (pl *Pipeline) Expire(tables *table.Snapshot, now int64, budget int) int {
	if tables == nil {
		return 0
	}
	pl.sweeping = tables
	timeouts := (*conntrack.Timeouts)(&tables.Settings().Timeouts)
	n := pl.flows.Sweep(conntrack.Tick(now), budget, timeouts, pl.gone)
	pl.sweeping = nil
	return n
}

func (pl *Pipeline) frontendGone(f *conntrack.Flow) bool {
	frontend := pl.sweeping.FrontendByID(f.Frontend)
	return frontend == nil || !sameFrontend(f, frontend)
}
