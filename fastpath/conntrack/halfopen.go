package conntrack

import (
	"cmp"
	"slices"
)

// checksPerConnection is how many entries each new connection checks once its port is past
// half its bound: by the time the bound is reached, every entry was checked lately.
const checksPerConnection = 4

func (t *Table) defaultHalfOpenMax() int { return max(t.Cap()/4, 1) }

// HalfOpen is the number of half-open TCP connections, or somewhat more.
func (t *Table) HalfOpen() int { return t.half.length() }

// HalfOpenEvicted counts the half-open connections that had to give way since the start.
func (t *Table) HalfOpenEvicted() uint64 { return t.half.evictions() }

// SetHalfOpenMax bounds the number of half-open TCP connections; 0 stands for a quarter
// of Cap, which is also the most once ports share the table. If there are more, the oldest go at once. Allocates when the bound changes.
func (t *Table) SetHalfOpenMax(n int) {
	if n <= 0 {
		n = t.defaultHalfOpenMax()
	}
	n = min(n, t.Cap())
	if t.shares.inForce {
		// A port that floods shall evict what it left half-open before its share of the
		// table is used up.
		n = min(n, t.defaultHalfOpenMax())
	}
	q := &t.half
	q.mu.Lock()
	if n == q.max() {
		q.mu.Unlock()
		return
	}
	excess := q.rebuild(n, len(q.lists), q.live())
	q.mu.Unlock()
	for i := range excess {
		q.evict(t, excess[i])
	}
}

// halfOpen reports whether the connection of n is there and was never established.
func (t *Table) halfOpen(n node) bool {
	fwd, rev, ok := t.states(n)
	return ok && !opened(stateBits(fwd), stateBits(rev))
}

// states gives the state words of both directions of n's flow, if it is there.
func (t *Table) states(n node) (fwd, rev uint64, ok bool) {
	s := &t.slots[n.slot]
	fwd = s.state.Load()
	peer := s.peer.Load()
	if stateIncarnation(fwd) != n.incarnation || !t.inTable(peer) {
		return 0, 0, false
	}
	rev = t.slots[peer].state.Load()
	return fwd, rev, stateIncarnation(s.state.Load()) == n.incarnation
}

func byAge(all []node) {
	slices.SortStableFunc(all, func(a, b node) int { return cmp.Compare(int32(a.created-b.created), 0) })
}
