package conntrack

import "sync/atomic"

// Ports share the room in the table, and the bounds of half-open connections and of
// unanswered flows: a port may have at most greed times what is free. One alone gets two
// thirds; the more ports are greedy, the less each may have, and there is always something
// left for one that has nothing. (Dynamic thresholds, Choudhury and Hahne, 1998, known from
// the buffers of switches.) A flow belongs to the port on which its client's packets come in.
const greed = 2

// Room is the number of flows that ports share: three quarters of Cap, up to which the
// table refuses hardly any flow for want of a place. What one port alone may have of it is
// the half that is recommended.
func (t *Table) Room() int { return t.Cap() * 3 / 4 }

// portIds is the number of ports: ids above are not given out.
const portIds = 4096

// shares counts flows by port.
type shares struct {
	inForce bool
	flows   []atomic.Int32
}

func (s *shares) add(port uint16, n int32) { s.flows[port%portIds].Add(n) }
func (s *shares) of(port uint16) int       { return int(s.flows[port%portIds].Load()) }

// SharePorts puts the shares of ports in force. It is called once, before the table is
// used by others. Which port a flow counts for follows from Flow.In.
func (t *Table) SharePorts() {
	t.shares.inForce = true
	for _, q := range []*queue{&t.half, &t.unanswered} {
		q.mu.Lock()
		q.rebuild(q.max(), portIds, q.live()) // all that was in has room
		q.mu.Unlock()
	}
}

// overShare reports whether the port may not have another flow. Several workers at once may
// go beyond the share by one each.
func (t *Table) overShare(port uint16) bool {
	return t.shares.inForce && t.shares.of(port) >= greed*(t.Room()-t.Len())
}

// moved counts a flow for the port on which its client is now.
func (t *Table) moved(from, to uint16) {
	if from != to {
		t.shares.add(from, -1)
		t.shares.add(to, 1)
	}
}

// in is the port on which packets of the slot's direction come in.
func (s *slot) in() uint16 { return uint16(s.sums.Load() >> inShift) }

func (s *slot) reply() bool { return s.marks.Load()&replyMark != 0 }

// clientPort is the port of a flow's client, given the slots of both directions.
func (t *Table) clientPort(a, b uint32) uint16 {
	if t.slots[a].reply() && t.inTable(b) {
		a = b
	}
	return t.slots[a].in()
}

// Fill says how full the table is, as parts of one.
type Fill struct {
	Flows      float64 // of Room
	HalfOpen   float64 // of the bound of half-open connections
	Unanswered float64 // of the bound of unanswered datagram flows
	Share      float64 // of its share, by the port that has most of it; 0 while ports do not share
	Port       uint16  // that port
}

// Fill looks at all ports, some microseconds.
func (t *Table) Fill() (f Fill) {
	f.Flows = float64(t.Len()) / float64(t.Room())
	f.HalfOpen = t.half.fill(&f)
	f.Unanswered = t.unanswered.fill(&f)
	if !t.shares.inForce {
		return f
	}
	bound := max(greed*(t.Room()-t.Len()), 1)
	for port := range t.shares.flows {
		f.note(uint16(port), t.shares.of(uint16(port)), bound)
	}
	return f
}

// note keeps the port that has most of its share.
func (f *Fill) note(port uint16, n, bound int) {
	if share := float64(n) / float64(bound); share > f.Share {
		f.Share, f.Port = share, port
	}
}

func (q *queue) fill(f *Fill) float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lists) > 1 {
		bound := max(q.bound(), 1)
		for port := range q.lists {
			f.note(uint16(port), int(q.lists[port].n), bound)
		}
	}
	return float64(q.used) / float64(q.max())
}
