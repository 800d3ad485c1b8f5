package blackhole

import (
	"cmp"
	"slices"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
)

// Kind says why the packets of a flow vanish.
type Kind uint8

const (
	None     Kind = iota // no hole
	Untold               // the sender cannot be told
	Unheeded             // the sender has been told and does not listen

	Kinds // number of kinds, None included
)

// String is the word used in metrics and `lace get`.
func (k Kind) String() string {
	if k >= Kinds {
		return "unknown"
	}
	return [...]string{"none", "untold", "unheeded"}[k]
}

// Lasting is how long a hole is spoken of after its last packet.
const Lasting = 5 * time.Minute

// Hole is one flow, as its packets came, that loses what is too long.
type Hole struct {
	Tuple   conntrack.Tuple // ports are 0 for later fragments and what has none
	Kind    Kind
	In, Out uint16 // ids of the ports where the packets come in, and which they do not fit
	MTU     uint32 // that Out takes, in bytes
	Longest uint32 // of the packets, in bytes
	Packets uint64 // lost
	Seen    int64  // the last one, nanoseconds of CLOCK_MONOTONIC
}

// same reports whether both are about one flow, lost in one way at one place.
func (h *Hole) same(o *Hole) bool {
	return h.Kind == o.Kind && h.Out == o.Out && h.Tuple == o.Tuple
}

// take adds what another one of the same knows.
func (h *Hole) take(o *Hole) {
	h.Packets += o.Packets
	h.Longest = max(h.Longest, o.Longest)
	if o.Seen >= h.Seen {
		h.Seen, h.In, h.MTU = o.Seen, o.In, o.MTU
	}
}

// Merge puts the holes of several workers together, the last seen first.
func Merge(all []Hole) (out []Hole) {
	for i := range all {
		at := slices.IndexFunc(out, func(h Hole) bool { return h.same(&all[i]) })
		switch {
		case all[i].Kind == None:
		case at < 0:
			out = append(out, all[i])
		default:
			out[at].take(&all[i])
		}
	}
	slices.SortStableFunc(out, func(a, b Hole) int { return cmp.Compare(b.Seen, a.Seen) })
	return out
}

// Current are the holes of all that are spoken of at now.
func Current(all []Hole, now int64) (out []Hole) {
	for _, h := range all {
		if h.Kind != None && now-h.Seen < int64(Lasting) {
			out = append(out, h)
		}
	}
	return out
}
