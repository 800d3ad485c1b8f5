package blackhole

import (
	"encoding/binary"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
)

// Holes is how many flows a Watch remembers.
const Holes = 8

// A sender that listens sends nothing too long when it has been told, but for what was on its
// way; one that probes for the MTU of its path sends a few at once and then none for minutes
// (RFC 8899, section 5.1). TCP that is not told sends again, at growing intervals.
const (
	Patience = 8
	Grace    = 2 * time.Second
	lapse    = time.Minute // after which what was told does not count
)

// Watch is what a worker knows. The zero value knows nothing.
type Watch struct {
	holes [Holes]Hole
	told  [64]told // by hash of the tuple
	fresh bool     // holes have changed since Holes was called
}

// told is a flow whose sender has been told.
type told struct {
	tuple       conntrack.Tuple
	answers     int
	first, last int64
}

// Untold notes a packet of h that was lost with nobody told.
func (w *Watch) Untold(h *Hole) { w.note(h, Untold) }

// Told notes a packet of h that was answered.
func (w *Watch) Told(h *Hole) {
	t := &w.told[place(&h.Tuple)]
	if t.tuple != h.Tuple || h.Seen-t.last > int64(lapse) || h.Seen < t.last {
		*t = told{tuple: h.Tuple, first: h.Seen}
	}
	t.last = h.Seen
	t.answers++
	if t.answers > Patience && t.last-t.first > int64(Grace) {
		w.note(h, Unheeded)
	}
}

// note adds a packet to its hole, which takes the place of the one that was seen longest ago
// when it is new.
func (w *Watch) note(h *Hole, kind Kind) {
	one := *h
	one.Kind, one.Packets = kind, 1
	w.fresh = true
	oldest := &w.holes[0]
	for i := range w.holes {
		at := &w.holes[i]
		if at.same(&one) {
			at.take(&one)
			return
		}
		if at.Seen < oldest.Seen || at.Kind == None && oldest.Kind != None {
			oldest = at
		}
	}
	*oldest = one
}

// Holes are those that are remembered, of Kind None where there are fewer. changed says
// whether they differ from what the last call returned. They are good until the next call of
// another method.
func (w *Watch) Holes() (holes *[Holes]Hole, changed bool) {
	changed, w.fresh = w.fresh, false
	return &w.holes, changed
}

// place spreads tuples; who makes them meet on purpose hides his own black holes only.
func place(t *conntrack.Tuple) int {
	le := binary.LittleEndian
	h := le.Uint64(t.Src[8:])*0x9e3779b97f4a7c15 ^ le.Uint64(t.Dst[8:])*0xc2b2ae3d27d4eb4f
	h ^= (uint64(t.SrcPort)<<32 | uint64(t.DstPort)<<8 | uint64(t.Protocol)) * 0xd6e8feb86659fd93
	return int(h * 0x9e3779b97f4a7c15 >> 58)
}
