package conntrack

import (
	"time"

	"lace-cni.io/lace/fastpath/packet"
)

// Timeouts are the times in nanoseconds after which an idle flow is forgotten. The type
// converts from and to table.Timeouts. Zero or less stands for the value of
// DefaultTimeouts.
type Timeouts struct {
	TCPHalfOpen    int64
	TCPEstablished int64
	TCPClosing     int64 // one FIN seen
	TCPClosed      int64 // both FINs or a reset seen: how long the tombstone stands
	UDPNew         int64 // no reply yet
	UDP            int64
	SCTP           int64
}

// DefaultTimeouts are for services in a cluster. Half-open outlasts the gaps between a
// client's SYNs up to the fifth (32 s, RFC 6298). Established and closing are those of
// kube-proxy. A tombstone stands as long as a kernel's TIME-WAIT, but does not keep a
// client from using its port again; see Reopens. UDP and SCTP are those of Linux; SCTP
// outlasts several heartbeats (30 s, RFC 9260, section 8.3).
func DefaultTimeouts() Timeouts {
	return Timeouts{
		TCPHalfOpen:    int64(60 * time.Second),
		TCPEstablished: int64(24 * time.Hour),
		TCPClosing:     int64(time.Hour),
		TCPClosed:      int64(60 * time.Second),
		UDPNew:         int64(30 * time.Second),
		UDP:            int64(120 * time.Second),
		SCTP:           int64(210 * time.Second),
	}
}

var defaults = DefaultTimeouts()

// maxTicks keeps differences of ticks within their sign bit: more than two years.
const maxTicks = 1 << 30

// Timeout is how long a flow in this state may be idle, in whole ticks, rounded up.
func (t *Timeouts) Timeout(protocol uint8, fwd, rev State) uint32 {
	ns, otherwise := t.choose(protocol, fwd, rev)
	if ns <= 0 {
		ns = otherwise
	}
	return uint32(min((uint64(ns)+(1<<TickShift-1))>>TickShift, maxTicks))
}

// choose gives the time configured and the default.
func (t *Timeouts) choose(protocol uint8, fwd, rev State) (ns, otherwise int64) {
	switch protocol {
	case packet.ProtocolTCP:
		switch TCPState(fwd, rev) {
		case HalfOpen:
			return t.TCPHalfOpen, defaults.TCPHalfOpen
		case Established:
			return t.TCPEstablished, defaults.TCPEstablished
		case Closing:
			return t.TCPClosing, defaults.TCPClosing
		}
		return t.TCPClosed, defaults.TCPClosed
	case packet.ProtocolSCTP:
		return t.SCTP, defaults.SCTP
	}
	if rev&StateSeen == 0 {
		return t.UDPNew, defaults.UDPNew
	}
	return t.UDP, defaults.UDP
}

// Expired reports whether the flow has been idle for longer than its timeout. Ticks are
// coarse: a flow lives up to two ticks longer than configured, never shorter.
func (t *Timeouts) Expired(fwd, rev *Flow, now uint32) bool {
	return t.expired(fwd.Protocol, stateWord(fwd.LastSeen, fwd.State, 0), stateWord(rev.LastSeen, rev.State, 0), now)
}

func (t *Timeouts) expired(protocol uint8, a, b uint64, now uint32) bool {
	seen := uint32(a)
	if int32(uint32(b)-seen) > 0 {
		seen = uint32(b)
	}
	idle := int32(now - seen) // negative when another worker's clock is ahead
	return idle > int32(t.Timeout(protocol, stateBits(a), stateBits(b)))
}

// Reopens reports whether a SYN on this TCP flow begins a new connection, for which a
// backend is to be chosen anew: the old one is closed or has expired. Otherwise the SYN
// is a retransmission, or forged, and the flow keeps its backend.
func (t *Timeouts) Reopens(fwd, rev *Flow, now uint32) bool {
	return TCPState(fwd.State, rev.State) == Closed || t.Expired(fwd, rev, now)
}
