package nat

import (
	"math/rand/v2"

	"lace-cni.io/lace/fastpath/conntrack"
)

// Ports is a range of source ports, First to Last inclusive, for flows whose source is
// rewritten. A port is used again and again towards different backends: only reply tuples
// must differ. They are kept apart by the flow table itself, so that any number of
// workers may use the same range, each with a Ports of its own. A range that is empty
// (First above Last, or First 0) has no port.
type Ports struct {
	First, Last uint16
	// Taken reports whether a port of the range is somebody else's, such as a node port: it is
	// left out. Nil: none is.
	Taken func(port uint16) bool

	spent [8]spent // backends towards which the range was found used up
	next  uint8
}

// spent spares the walk over the whole range for every further packet of a flood.
type spent struct {
	reply conntrack.Tuple // without port
	until uint32          // ticks
}

// holdoff is how many ticks a used-up range is believed to be so: a quarter second.
const holdoff = 4

// Open registers the flow that t describes: makes both directions (ids, stamps, targets,
// modes and state in fwd and rev are the caller's) and inserts them. When the source
// port is 0, or its reply tuple is taken, it tries the ports of the range in random
// order, every one once, and t gets the port found.
//
// Results are those of conntrack.Insert; Clash says that no port of the range is free
// towards that backend. Allocates nothing. A full walk over 28,000 ports takes some
// milliseconds, and is not repeated for a quarter second.
func (p *Ports) Open(flows *conntrack.Table, r *rand.Rand, t *Translation, fwd, rev *conntrack.Flow, now uint32) conntrack.Result {
	return p.search(flows, r, t, fwd, rev, now, nil)
}

// Reopen is Open for a flow that gets another backend; see conntrack.Replace.
func (p *Ports) Reopen(flows *conntrack.Table, r *rand.Rand, old *conntrack.Flow, t *Translation, fwd, rev *conntrack.Flow, now uint32) conntrack.Result {
	return p.search(flows, r, t, fwd, rev, now, old)
}

func (p *Ports) search(flows *conntrack.Table, r *rand.Rand, t *Translation, fwd, rev *conntrack.Flow, now uint32, old *conntrack.Flow) conntrack.Result {
	if t.SourcePort != 0 {
		if result := register(flows, t, fwd, rev, now, old); result != conntrack.Clash {
			return result
		}
	}
	t.SourcePort = 0
	t.Make(fwd, rev)
	reply := rev.Tuple
	if p.First == 0 || p.First > p.Last || p.isSpent(&reply, now) {
		return conntrack.Clash
	}
	var found conntrack.Flow
	for w := p.walk(r); w.left > 0; {
		t.SourcePort = w.port(p.First)
		if p.Taken != nil && p.Taken(t.SourcePort) {
			continue
		}
		rev.Tuple.DstPort = t.SourcePort
		if flows.Lookup(&rev.Tuple, &found) {
			continue // cheaper than to find out under locks
		}
		if result := register(flows, t, fwd, rev, now, old); result != conntrack.Clash {
			return result
		}
	}
	p.spent[p.next%uint8(len(p.spent))] = spent{reply, now + holdoff}
	p.next++
	return conntrack.Clash
}

func register(flows *conntrack.Table, t *Translation, fwd, rev *conntrack.Flow, now uint32, old *conntrack.Flow) conntrack.Result {
	t.Make(fwd, rev)
	if old != nil {
		return flows.Replace(old, fwd, rev, now)
	}
	return flows.Insert(fwd, rev, now)
}

func (p *Ports) isSpent(reply *conntrack.Tuple, now uint32) bool {
	for i := range p.spent {
		if p.spent[i].reply == *reply && int32(now-p.spent[i].until) < 0 {
			return true
		}
	}
	return false
}

// walk visits 0 to size-1, each once: a random start and a random step prime to size, so
// that ports in use do not cluster.
type walk struct{ at, step, size, left uint32 }

func (p *Ports) walk(r *rand.Rand) walk {
	size := uint32(p.Last) - uint32(p.First) + 1
	w := walk{at: r.Uint32N(size), step: 1 + r.Uint32N(size), size: size, left: size}
	for !coprime(w.step, size) {
		w.step = 1 + r.Uint32N(size)
	}
	return w
}

func (w *walk) port(first uint16) uint16 {
	port := first + uint16(w.at)
	w.at = (w.at + w.step) % w.size
	w.left--
	return port
}

func coprime(a, b uint32) bool {
	for b != 0 {
		a, b = b, a%b
	}
	return a == 1
}
