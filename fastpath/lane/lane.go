// Package lane is Go's side of the express lane: which flows the kernel may carry on its
// own, and from which moment on.
//
// It owns that policy and the short list of flows that wait for their moment. It must
// never choose anything about a flow, delay a packet, or be the only place that knows of
// a flow: what waits here and is forgotten is offered again by its next packet. Revoking
// is nobody's task: the kernel compares generations with each packet.
//
// A flow is handed over in both directions at once:
//
//   - TCP when the server's SYN-ACK is about to be forwarded: everything behind it meets
//     the lane, and nothing can overtake anything;
//   - what is under way already (UDP that was answered, or whose client goes on sending
//     without an answer; TCP that was not handed over at its beginning) when the worker
//     has emptied its ring, so that no packet in the ring is overtaken by a later one.
//
// SCTP stays with Go, whose checksum the kernel cannot mend, and so do flows of ids that
// the kernel's generation maps have no room for, and everything while the lane is off.
//
// Flow: pipeline → Offer for each packet of a flow that Go forwards itself → Settle at
// the end of the worker's round → conntrack.InstallPair.
//
// Cost: nothing for flows that were handed over; some 15 ns for a packet of another; one
// or two uncontended locks for each flow handed over. Nothing is allocated.
package lane

import (
	"math/bits"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// Sizes of the kernel's generation maps: ids from here on are not in them.
const (
	FrontendIDs = 1 << 18
	BackendIDs  = 1 << 20
)

// places bounds the flows that wait, one bit each in a word.
const places = 64

// patience is how long flows wait for an empty ring, in nanoseconds. A worker that is
// overrun never empties it, and handing over is what helps it then: a few packets out of
// order are the smaller harm.
const patience = int64(5e6)

// Lane hands flows over for one worker. It is not safe for concurrent use.
type Lane struct {
	flows     *conntrack.Table
	installed int
	taken     uint64 // a bit for each place in use
	since     int64  // when the first of them was taken, nanoseconds
	waiting   [places]conntrack.Flow
}

// New makes the lane of one worker.
func New(flows *conntrack.Table) *Lane { return &Lane{flows: flows} }

// Offer considers the flow f of a packet that Go is about to forward, before the packet
// is noted in f. flags are its TCP flags, 0 for other protocols; now is in nanoseconds of
// CLOCK_MONOTONIC.
func (l *Lane) Offer(f *conntrack.Flow, flags uint8, now int64) {
	if f.Mode != conntrack.ModeGo || !carries(f) {
		return
	}
	switch readiness(f, flags, conntrack.Tick(now)) {
	case ready:
		l.install(f)
	case underWay:
		l.wait(f, now)
	}
}

// carries reports whether the kernel can carry the flow.
func carries(f *conntrack.Flow) bool {
	return f.Protocol != packet.ProtocolSCTP && f.Frontend < FrontendIDs && f.Backend < BackendIDs
}

// moment says when a flow may be handed over.
type moment int

const (
	notYet   moment = iota
	ready           // now
	underWay        // when nothing of it is in the ring
)

func readiness(f *conntrack.Flow, flags uint8, tick uint32) moment {
	reply := f.Flags&conntrack.FlagReply != 0
	if f.Protocol != packet.ProtocolTCP {
		// A client that sends in a later tick than before means to go on; one that opens
		// flow after flow does not.
		if reply || tick != f.LastSeen {
			return underWay
		}
		return notYet
	}
	switch {
	case !reply || flags&(packet.FlagRST|packet.FlagFIN) != 0:
		return notYet // it may never open, or is about to end
	case flags&packet.FlagSYN != 0:
		return ready
	}
	return underWay
}

// wait keeps the flow for Settle. Of two flows for one place the first has it; the other
// comes again.
func (l *Lane) wait(f *conntrack.Flow, now int64) {
	place := placeOf(f)
	bit := uint64(1) << place
	if l.taken&bit != 0 {
		return
	}
	if l.taken == 0 {
		l.since = now
	}
	l.taken |= bit
	l.waiting[place] = *f
}

// placeOf spreads flows, both directions of one to the same place. Who makes his own
// collide keeps them waiting.
func placeOf(f *conntrack.Flow) uint {
	client, from, to := &f.Src, f.SrcPort, f.DstPort
	if f.Flags&conntrack.FlagReply != 0 {
		client, from, to = &f.Rewrite.Dst, f.Rewrite.DstPort, f.Rewrite.SrcPort
	}
	h := uint32(from)<<16 | uint32(to) ^ uint32(client[15])<<8
	return uint(h * 0x9e3779b1 >> 26)
}

// Settle ends a round: drained says that the worker's ring was empty and that what was
// received has been sent. now as for Offer.
func (l *Lane) Settle(drained bool, now int64) {
	if l.taken == 0 || !drained && now-l.since < patience {
		return
	}
	for rest := l.taken; rest != 0; rest &= rest - 1 {
		l.install(&l.waiting[bits.TrailingZeros64(rest)])
	}
	l.taken = 0
}

func (l *Lane) install(f *conntrack.Flow) {
	if l.flows.InstallPair(f) {
		l.installed++
	}
}

// Installed is how many flows were handed over since the last call.
func (l *Lane) Installed() int {
	n := l.installed
	l.installed = 0
	return n
}
