// Package police decides how much each port may ask of Go while Go is congested.
//
// The kernel leaves to Go what it cannot settle itself, and Go takes so many packets a
// second and no more. As long as its receive rings are nearly empty, nobody is held back,
// however much he asks. When they fill, a limit for each port comes down step by step until
// they do not fill any more, and goes up again when they are empty: ports that ask for less
// than the limit do not notice it, and those that ask for more share what is left evenly,
// so that one that is alone may have nearly everything.
//
// It owns that rule and nothing else: who measures rings tells it, and the programs in the
// kernel drop (xdp/bpf/police.h). It must never allocate, block a worker, or go below the
// rate that every port is promised.
//
// Flow: Worker → Governor.Note → Limits → xdp.Objects.Allow.
//
// Cost: a load and a comparison for most calls; a lock and some stores once a millisecond
// while there is something to change.
package police

// Ask is what a packet wants of Go. Numbers are those of xdp/bpf/police.h.
type Ask uint8

const (
	New   Ask = iota // a flow
	Flow             // to be carried along a flow that exists
	Again            // a second look at a flow whose Service, endpoint or way has changed, or that an error is about

	Asks = 3 // number of kinds
)

func (a Ask) String() string {
	if a >= Asks {
		return "unknown"
	}
	return [Asks]string{"new", "flow", "again"}[a]
}

// Limits say what each port may ask.
type Limits struct {
	PerSecond [Asks]uint32 // packets per second, by Ask; 0: no limit
	Burst     uint32       // packets that may come at once
}

// Any is 1 when something is limited, else 0.
func (l *Limits) Any() uint64 {
	for _, n := range l.PerSecond {
		if n > 0 {
			return 1
		}
	}
	return 0
}
