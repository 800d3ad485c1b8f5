package dataplane

import (
	"log/slog"
	"time"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/xdp"
)

// repairs counts what somebody took away or changed under this process and was put right,
// over all the trunks of its life. It belongs to the goroutine that keeps the tables.
type repairs struct {
	log      *slog.Logger
	counts   [counter.Repairs]uint64
	counters *counter.File // nil: none is open

	startTook time.Duration // from the start of the process until it was ready; 0: it is not
}

// parts are the kernel's side of what is counted.
var parts = map[xdp.Part]counter.Repair{
	xdp.PartTrunk: counter.RepairTrunk, xdp.PartNamespace: counter.RepairNamespace,
	xdp.PartProgram: counter.RepairProgram, xdp.PartLinkPin: counter.RepairLinkPin,
	xdp.PartMapPin: counter.RepairMapPin, xdp.PartSocket: counter.RepairSocket,
	xdp.PartEntries: counter.RepairEntries,
}

// kernel notes a repair of the kernel's side.
func (r *repairs) kernel(p xdp.Part, which string) { r.note(parts[p], which) }

// note says what was repaired, and counts it.
func (r *repairs) note(what counter.Repair, which string) {
	r.log.Warn("repaired what somebody else took away or changed", "what", what.String(), "which", which)
	r.counts[what]++
	r.show(what)
}

func (r *repairs) show(what counter.Repair) {
	if r.counters != nil {
		r.counters.Set(what.Gauge(), r.counts[what])
	}
}

// use shows the counts in a counter file from now on; nil: in none.
func (r *repairs) use(f *counter.File) {
	r.counters = f
	for what := range counter.Repairs {
		r.show(what)
	}
}
