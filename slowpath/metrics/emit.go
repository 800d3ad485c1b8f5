package metrics

import (
	"time"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/xdp"
)

// Where a packet was dropped.
const (
	inGo     = "go"
	inKernel = "kernel"
)

// classes are the verdicts in a fixed order.
var classes = []reason.Class{reason.ClassForward, reason.ClassAnswer, reason.ClassPass, reason.ClassDrop}

func byVerdict(r *Reading, to send, of func(counter.Tally) uint64) {
	if r.Go == nil {
		return
	}
	var sum [reason.ClassDrop + 1]uint64 // reason.ClassDrop is the last class
	for i, t := range r.Go.Reasons {
		sum[reason.Reason(i).Class()] += of(t)
	}
	for _, c := range classes {
		to(float64(sum[c]), c.String())
	}
}

func goPackets(r *Reading, to send) {
	byVerdict(r, to, func(t counter.Tally) uint64 { return t.Packets })
}

func goBytes(r *Reading, to send) { byVerdict(r, to, func(t counter.Tally) uint64 { return t.Bytes }) }

func decisions(r *Reading, to send) {
	if r.Go == nil {
		return
	}
	for i := reason.None + 1; i < reason.Count; i++ {
		to(float64(r.Go.Reasons[i].Packets), i.String())
	}
}

// drops shows each reason on both sides: those that one of them never gives stay zero,
// which is what an alert on a sum needs.
func drops(r *Reading, to send) {
	for i := reason.None + 1; i < reason.Count; i++ {
		if i.Class() != reason.ClassDrop {
			continue
		}
		if r.Go != nil {
			to(float64(r.Go.Reasons[i].Packets), i.String(), inGo)
		}
		if r.Kernel != nil {
			to(float64(r.Kernel.Reasons[i].Packets), i.String(), inKernel)
		}
	}
}

// actions are what the BPF programs do with packets.
func actions(r *Reading, show func(action string, c xdp.Count)) {
	if r.Kernel == nil {
		return
	}
	var dropped xdp.Count
	for i, c := range r.Kernel.Reasons {
		if reason.Reason(i).Class() == reason.ClassDrop {
			dropped.Packets += c.Packets
			dropped.Bytes += c.Bytes
		}
	}
	show("passed", r.Kernel.Reasons[reason.NotClaimed])
	show("claimed", r.Kernel.Claimed)
	show("punted", r.Kernel.Punted)
	show("lane", r.Kernel.Hits())
	show("injected", r.Kernel.Injected)
	show("dropped", dropped)
}

func kernelPackets(r *Reading, to send) {
	actions(r, func(action string, c xdp.Count) { to(float64(c.Packets), action) })
}

func kernelBytes(r *Reading, to send) {
	actions(r, func(action string, c xdp.Count) { to(float64(c.Bytes), action) })
}

func lanePackets(r *Reading, to send) {
	if r.Kernel != nil {
		to(float64(r.Kernel.Hits().Packets))
	}
}

func laneBytes(r *Reading, to send) {
	if r.Kernel != nil {
		to(float64(r.Kernel.Hits().Bytes))
	}
}

func lanePunts(r *Reading, to send) {
	if r.Kernel == nil {
		return
	}
	for cause := xdp.Cause(1); int(cause) < xdp.Causes; cause++ {
		to(float64(r.Kernel.Punts[cause].Packets), cause.String())
	}
}

func ofGauge(g counter.Gauge) func(*Reading, send) {
	return func(r *Reading, to send) {
		if r.Go != nil {
			to(float64(r.Go.Gauges[g]))
		}
	}
}

func ofEvent(e counter.Event) func(*Reading, send) {
	return func(r *Reading, to send) {
		if r.Go != nil {
			to(float64(r.Go.Events[e]))
		}
	}
}

func ofReason(i reason.Reason) func(*Reading, send) {
	return func(r *Reading, to send) {
		if r.Go != nil {
			to(float64(r.Go.Reasons[i].Packets))
		}
	}
}

func ringFull(r *Reading, to send) {
	if r.Go != nil {
		to(float64(r.Go.Reasons[reason.RingFull].Packets), "trunk", "tx")
		to(float64(r.Go.Gauges[counter.TrunkDropped]), "trunk", "to-go")
		to(float64(r.Go.Gauges[counter.ReturnDropped]), "trunk", "from-go")
	}
}

func events(r *Reading, to send) {
	if r.Go == nil {
		return
	}
	for e := range counter.Events {
		to(float64(r.Go.Events[e]), e.String())
	}
}

func workers(r *Reading, to send) {
	if r.Go != nil {
		to(float64(r.Go.Workers))
	}
}

func up(r *Reading, to send) {
	if r.Fastpath.Alive {
		to(1)
		return
	}
	to(0)
}

func modes(r *Reading, to send) {
	if r.Fastpath.Alive {
		to(1, r.Fastpath.XDPMode, r.Fastpath.SocketMode)
	}
}

func started(r *Reading, to send) {
	if r.Go != nil {
		to(float64(r.Go.Gauges[counter.Started]) / 1e9)
	}
}

func generation(r *Reading, to send) { to(float64(r.Published.Generation)) }

func publishedAt(r *Reading, to send)   { to(seconds(r.Published.At)) }
func snapshotBytes(r *Reading, to send) { to(float64(r.Published.Bytes)) }
func queued(r *Reading, to send)        { to(seconds(r.Published.Queued)) }
func objects(r *Reading, to send)       { byKind(r.Published.Objects, to) }
func programmed(r *Reading, to send)    { byKind(r.Published.Programmed, to) }
func problems(r *Reading, to send)      { byKind(r.Published.Problems, to) }

func repairs(r *Reading, to send) {
	for what, n := range r.Repairs {
		to(float64(n), what)
	}
}

// startTook is left out of what an older fast path wrote.
func startTook(r *Reading, to send) {
	if r.Go != nil && r.Go.Gauges[counter.StartTook] != 0 {
		to(float64(r.Go.Gauges[counter.StartTook]) / 1e9)
	}
}

func byKind(m map[string]int, to send) {
	for kind, n := range m {
		to(float64(n), kind)
	}
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano()) / 1e9
}
