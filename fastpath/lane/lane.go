// Package lane is Go's side of the express lane: which flows the kernel may carry on its
// own, and from which moment on.
//
// It owns that policy and the short list of flows that wait for their moment. It must
// never choose anything about a flow, delay a packet, or be the only place that knows of
// a flow: what waits here and is forgotten is offered again by its next packet. Revoking
// is nobody's task: the kernel compares generations with each packet.
//
// A flow is handed over as soon as the kernel overtakes nothing that Go has of it:
//
//   - TCP over a wire when it is registered, in both directions: behind a SYN nothing is
//     sent before it was answered, and the answer is the lane's already. A SYN itself always
//     comes to Go;
//   - the replies of near TCP when it is registered: within the node, or over an uplink that is
//     a veth. Its client's packets stay with Go until one has followed the answer. In the lane
//     the ACK that opens the connection would be processed where the answer was, on the
//     worker's processor, and what the client says next where the client runs; a server's
//     kernel that meets both at a time may know the connection by neither its request nor
//     itself, and reset it (inet_ehash_insert in net/ipv4/inet_hashtables.c). A SYN on a
//     connection that is there may open it anew behind a reset, and puts it back to this. What
//     is too long for the trunk is the kernel's even then;
//   - the replies of UDP when it is registered, for none is under way before the first
//     packet was forwarded. What asks once and is answered once thus comes to Go once;
//   - what is under way already (the client's direction of near TCP and of UDP
//     that was answered, or of UDP whose client goes on sending without an answer; what was
//     registered while the lane was off) when the worker has sent what it had and its ring is
//     empty, so that nothing of the flow is overtaken but what is on its way to the ring at
//     that moment: by what its sender sends next, as on any network.
//
// SCTP stays with Go, whose checksum the kernel cannot mend, and so do flows of ids that
// the kernel's generation maps have no room for, and everything while the lane is off.
//
// Flow: pipeline → Begin for each new flow; Offer for each packet of a flow that Go forwards
// itself → Settle at the end of the worker's round → conntrack.InstallPair.
//
// Cost: nothing for flows that were handed over; some 15 ns for a packet of another, and
// for one of a client that waits for an answer a look at the slot of the replies; one or two uncontended locks
// for each flow that is handed over later than it begins. Nothing is allocated.
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

// Begin says in both directions of a flow that is about to be registered who is to move
// its packets. near: neither end lies beyond a wire.
func (l *Lane) Begin(fwd, rev *conntrack.Flow, protocol uint8, near bool) {
	fwd.Mode, rev.Mode = conntrack.ModeGo, conntrack.ModeGo
	if !carries(protocol, fwd) {
		return
	}
	rev.Mode = conntrack.ModeLane
	switch {
	case protocol == packet.ProtocolTCP && near:
		fwd.Mode = conntrack.ModeOpening
	case protocol == packet.ProtocolTCP:
		fwd.Mode = conntrack.ModeLane
	}
}

// Reopen takes the client's direction of a near connection back to Go, one of whose
// SYNs Go is about to forward: behind a reset it may open a new connection, of which the same
// holds as of any. Where it opens none the client's next packet hands it over again.
func (l *Lane) Reopen(f *conntrack.Flow) {
	if f.Mode == conntrack.ModeLane && f.Flags&conntrack.FlagReply == 0 {
		l.flows.SetMode(f, conntrack.ModeOpening)
	}
}

// Begun notes that the flow was registered as Begin has said.
func (l *Lane) Begun(fwd *conntrack.Flow) {
	if fwd.Mode == conntrack.ModeLane {
		l.installed++
	}
}

// Offer considers the flow f of a packet that Go is about to forward, before the packet
// is noted in f. flags are its TCP flags, 0 for other protocols; now is in nanoseconds of
// CLOCK_MONOTONIC.
func (l *Lane) Offer(f *conntrack.Flow, flags uint8, now int64) {
	if f.Mode != conntrack.ModeLane && carries(f.Protocol, f) && l.ready(f, flags, conntrack.Tick(now)) {
		l.wait(f, now)
	}
}

// carries reports whether the kernel can carry a flow of this protocol.
func carries(protocol uint8, f *conntrack.Flow) bool {
	return protocol != packet.ProtocolSCTP && f.Frontend < FrontendIDs && f.Backend < BackendIDs
}

// ready reports whether the flow is to be handed over once nothing of it is in the ring.
func (l *Lane) ready(f *conntrack.Flow, flags uint8, tick uint32) bool {
	reply := f.Flags&conntrack.FlagReply != 0
	if f.Protocol == packet.ProtocolTCP {
		// Without a word from the server it may never open, with its SYN it is about to; with
		// an end it is not worth it.
		if flags&(packet.FlagSYN|packet.FlagRST|packet.FlagFIN) != 0 {
			return false
		}
		return reply || f.Mode == conntrack.ModeOpening && l.flows.Answered(f)
	}
	// A client that sends in a later tick than before means to go on; one that opens
	// flow after flow does not.
	return reply || tick != f.LastSeen || l.flows.Answered(f)
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

// Settle ends a round: drained says that what was received has been sent and that the
// worker's ring is empty. now as for Offer.
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
