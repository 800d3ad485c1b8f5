package conntrack

import "sync"

// queue holds the half-open TCP connections, oldest first: those that were never
// established, whether the server has not answered yet or has refused. Those established
// or deleted since are found out later, a few at each new connection and each sweep,
// since the lane tells nobody; so its length is an upper bound. Nothing here is shared
// with BPF; Map builds it anew.
type queue struct {
	mu      sync.Mutex
	nodes   []node // node 0 is the anchor of the ring: next is the oldest, prev the newest
	free    uint32 // unused nodes, chained by next
	used    int
	cursor  uint32 // next to be checked
	evicted uint64
}

type node struct {
	next, prev  uint32
	slot        uint32
	created     uint32
	incarnation uint16
}

// grace is how many ticks a half-open connection is safe from eviction, about 100 ms: in
// a flood that fills the bound faster than that, refusing new ones lets those that were
// let in finish.
const grace = 2

// checksPerAdmission is how many entries each new connection checks once the queue is
// half full. Four to one new: by the time it is full, every entry was checked lately.
const checksPerAdmission = 4

func (t *Table) defaultHalfOpenMax() int { return max(t.Cap()/4, 1) }

// HalfOpen is the number of half-open TCP connections, or somewhat more.
func (t *Table) HalfOpen() int {
	t.half.mu.Lock()
	defer t.half.mu.Unlock()
	return t.half.used
}

// HalfOpenEvicted counts the half-open connections that had to give way since the start.
func (t *Table) HalfOpenEvicted() uint64 {
	t.half.mu.Lock()
	defer t.half.mu.Unlock()
	return t.half.evicted
}

// SetHalfOpenMax bounds the number of half-open TCP connections; 0 stands for a quarter
// of Cap. If there are more, the oldest go at once. Allocates when the bound changes.
func (t *Table) SetHalfOpenMax(n int) {
	if n <= 0 {
		n = t.defaultHalfOpenMax()
	}
	n = min(n, t.Cap())
	t.half.mu.Lock()
	if n == t.half.max() {
		t.half.mu.Unlock()
		return
	}
	waiting := t.half.live(t)
	excess := waiting[:max(len(waiting)-n, 0)]
	t.half.resize(n)
	for _, w := range waiting[len(excess):] {
		t.half.push(w.slot, w.incarnation, w.created)
	}
	t.half.mu.Unlock()
	for i := range excess {
		t.evict(&excess[i])
	}
}

// admit enters f, which was just inserted. The oldest may have to give way to it. It
// reports false when all are too young for that.
func (t *Table) admit(f *Flow, now uint32) bool {
	q := &t.half
	q.mu.Lock()
	if q.used > q.max()/2 {
		q.check(t, checksPerAdmission)
	}
	var victim node
	if q.free == 0 {
		oldest := q.nodes[0].next
		if v := q.nodes[oldest]; t.waiting(&v) {
			if int32(now-v.created) < grace {
				q.mu.Unlock()
				return false
			}
			victim = v
		}
		q.remove(oldest)
	}
	q.push(f.slot, f.incarnation, now)
	q.mu.Unlock()
	if victim.slot != 0 {
		t.evict(&victim)
	}
	return true
}

// evict deletes a connection unless it was established at the last moment.
func (t *Table) evict(v *node) {
	unopened := func(fwd, rev uint64) bool { return !opened(stateBits(fwd), stateBits(rev)) }
	if t.take(v.slot, v.incarnation, unopened) {
		t.half.mu.Lock()
		t.half.evicted++
		t.half.mu.Unlock()
	}
}

// waiting reports whether the connection of n is there and was never established.
func (t *Table) waiting(n *node) bool {
	s := &t.slots[n.slot]
	w, peer := s.state.Load(), s.peer.Load()
	if stateIncarnation(w) != n.incarnation || !t.inTable(peer) {
		return false
	}
	rev := stateBits(t.slots[peer].state.Load())
	return !opened(stateBits(w), rev) && stateIncarnation(s.state.Load()) == n.incarnation
}

// resize empties the queue and gives it room for n.
func (q *queue) resize(n int) {
	q.nodes = make([]node, n+1)
	q.free, q.used, q.cursor = 1, 0, 0
	for i := 1; i < n; i++ {
		q.nodes[i].next = uint32(i) + 1
	}
}

func (q *queue) max() int { return len(q.nodes) - 1 }

// push appends; there must be a free node.
func (q *queue) push(slot uint32, incarnation uint16, created uint32) {
	i := q.free
	q.free = q.nodes[i].next
	q.used++
	last := q.nodes[0].prev
	q.nodes[i] = node{next: 0, prev: last, slot: slot, created: created, incarnation: incarnation}
	q.nodes[last].next = i
	q.nodes[0].prev = i
}

func (q *queue) remove(i uint32) {
	n := &q.nodes[i]
	q.nodes[n.prev].next, q.nodes[n.next].prev = n.next, n.prev
	if q.cursor == i {
		q.cursor = n.next
	}
	*n = node{next: q.free}
	q.free = i
	q.used--
}

// check looks at the next n entries and drops those that are not half-open any more.
func (q *queue) check(t *Table, n int) {
	for range min(n, q.used) {
		if q.cursor == 0 {
			q.cursor = q.nodes[0].next
		}
		i := q.cursor
		q.cursor = q.nodes[i].next
		if !t.waiting(&q.nodes[i]) {
			q.remove(i)
		}
	}
}

func (q *queue) tidy(t *Table, n int) {
	q.mu.Lock()
	q.check(t, n)
	q.mu.Unlock()
}

// live copies the entries that are half-open, oldest first.
func (q *queue) live(t *Table) []node {
	var all []node
	for i := q.nodes[0].next; i != 0; i = q.nodes[i].next {
		if t.waiting(&q.nodes[i]) {
			all = append(all, q.nodes[i])
		}
	}
	return all
}
