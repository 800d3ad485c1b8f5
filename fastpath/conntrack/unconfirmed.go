package conntrack

import "sync"

// queue holds the flows of one kind that nobody has confirmed, oldest first for each port
// from which they came: TCP connections that were never established, whether the server
// has not answered yet or has refused; and datagram flows without an answer. Those
// confirmed or deleted since are found out later, a few at each new flow and each sweep,
// since the lane tells nobody; so its length is an upper bound. Nothing here is shared
// with BPF; Map builds it anew.
type queue struct {
	waits  func(node) bool // the flow is there and still unconfirmed
	checks int             // entries that each new flow checks once its port is past half its bound

	mu      sync.Mutex
	nodes   []node // node 0 is nobody's
	lists   []list // by port; a single one while ports do not share
	free    uint32 // unused nodes, chained by next
	used    int
	cursor  uint32 // next node that a sweep checks
	evicted uint64
}

type node struct {
	next, prev  uint32
	slot        uint32 // 0: unused
	created     uint32
	incarnation uint16
	port        uint16
}

// list is the ring of one port's nodes without an anchor: 0 is no node. due is how many
// checks its new flows have asked for; vain is how many in a row found nothing, up to
// enough.
type list struct{ oldest, newest, cursor, n, due, vain uint32 }

// together is the most that is done at once, to one 64th of a list: the slots of old flows
// are in no cache, and the processor waits for many of them at the same time as for one.
const together = 16

func (l *list) together() int { return min(int(l.n)/64, together) }

// enough checks in vain make the next ones as many times rarer: nobody answers a flood.
const enough = 8

// grace is how many ticks an unconfirmed flow is safe from eviction, about 100 ms: in a
// flood that fills the bound faster than that, refusing new ones lets those that were let
// in finish.
const grace = 2

// resize empties the queue and gives it room for n.
func (q *queue) resize(n int) {
	q.nodes = make([]node, n+1)
	q.free, q.used, q.cursor = 1, 0, 0
	for i := 1; i < n; i++ {
		q.nodes[i].next = uint32(i) + 1
	}
	clear(q.lists)
}

func (q *queue) max() int { return len(q.nodes) - 1 }

// bound is how many entries one port may have now; see shares.
func (q *queue) bound() int {
	if len(q.lists) == 1 {
		return q.max()
	}
	return greed * (q.max() - q.used)
}

func (q *queue) list(port uint16) *list { return &q.lists[int(port)%len(q.lists)] }

// admit enters f, which was just inserted. Older ones of its port may have to give way to
// it: a few at once, at least two as long as the port has more than its share. It reports
// false when they are too young for that.
func (q *queue) admit(t *Table, f *Flow, now uint32) bool {
	n := node{slot: f.slot, incarnation: f.incarnation, created: now, port: f.In}
	q.mu.Lock()
	l := q.list(f.In)
	q.lookBack(l)
	if q.roomFor(l) {
		q.push(n)
		q.mu.Unlock()
		return true
	}
	victims, ok := q.makeRoom(l, now)
	if ok {
		q.push(n)
	}
	q.mu.Unlock()
	for i := range victims {
		q.evict(t, victims[i])
	}
	return ok
}

func (q *queue) roomFor(l *list) bool { return q.free != 0 && int(l.n) < q.bound() }

// lookBack checks older flows of a port that has more than half of its bound.
func (q *queue) lookBack(l *list) {
	if int(l.n) <= q.bound()/2 {
		return
	}
	l.due += uint32(q.checks)
	n := max(l.together(), q.checks)
	if l.due < uint32(n)*max(l.vain, 1) {
		return
	}
	l.due = 0
	if q.check(l, n) > 0 || n < together {
		l.vain = 0
	} else if l.vain < enough {
		l.vain++
	}
}

// makeRoom takes the oldest flows of a port, or of the one that has most, out of the queue.
// Those that still wait are to be evicted.
func (q *queue) makeRoom(l *list, now uint32) (victims [together]node, ok bool) {
	some := l.together()
	for i := range max(some, 2) {
		if i >= some && q.roomFor(l) {
			return victims, true
		}
		from := l
		if l.n == 0 {
			from = q.longest()
		}
		if v := q.nodes[from.oldest]; q.waits(v) {
			if int32(now-v.created) < grace {
				return victims, i > 0
			}
			victims[i] = v
		}
		q.remove(from.oldest)
	}
	return victims, true
}

// longest is the list of the port that has most, for when ports that have more than their
// share leave nothing to one that has nothing.
func (q *queue) longest() *list {
	most := &q.lists[0]
	for i := range q.lists {
		if q.lists[i].n > most.n {
			most = &q.lists[i]
		}
	}
	return most
}

// evict deletes a flow unless it was confirmed at the last moment.
func (q *queue) evict(t *Table, v node) {
	if v.slot == 0 || !t.take(v.slot, v.incarnation, func(_, _ uint64) bool { return q.waits(v) }) {
		return
	}
	q.mu.Lock()
	q.evicted++
	q.mu.Unlock()
}

// push appends to the list of the node's port; there must be a free node.
func (q *queue) push(n node) {
	l, i := q.list(n.port), q.free
	q.free = q.nodes[i].next
	q.used++
	n.next, n.prev = 0, l.newest
	q.nodes[i] = n
	if l.newest == 0 {
		l.oldest = i
	} else {
		q.nodes[l.newest].next = i
	}
	l.newest = i
	l.n++
}

func (q *queue) remove(i uint32) {
	n := q.nodes[i]
	l := q.list(n.port)
	if n.prev == 0 {
		l.oldest = n.next
	} else {
		q.nodes[n.prev].next = n.next
	}
	if n.next == 0 {
		l.newest = n.prev
	} else {
		q.nodes[n.next].prev = n.prev
	}
	if l.cursor == i {
		l.cursor = n.next
	}
	l.n--
	q.nodes[i] = node{next: q.free}
	q.free = i
	q.used--
}

// check looks at the next n entries of a port and drops those that need not wait any more.
func (q *queue) check(l *list, n int) (dropped int) {
	for range min(n, int(l.n)) {
		if l.cursor == 0 {
			l.cursor = l.oldest
		}
		i := l.cursor
		l.cursor = q.nodes[i].next
		if !q.waits(q.nodes[i]) {
			q.remove(i)
			dropped++
		}
	}
	return dropped
}

// tidy does the same with the next n places of the queue.
func (q *queue) tidy(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for range min(n, q.max()) {
		if q.used == 0 {
			return
		}
		q.cursor++
		if int(q.cursor) > q.max() {
			q.cursor = 1
		}
		if i := q.cursor; q.nodes[i].slot != 0 && !q.waits(q.nodes[i]) {
			q.remove(i)
		}
	}
}

// live copies the entries that wait, oldest first.
func (q *queue) live() []node {
	var all []node
	for i := range q.nodes {
		if q.nodes[i].slot != 0 && q.waits(q.nodes[i]) {
			all = append(all, q.nodes[i])
		}
	}
	byAge(all)
	return all
}

// rebuild gives the queue room for n, and lists for so many ports, and enters what waits.
// What does not fit is returned: the oldest.
func (q *queue) rebuild(n, ports int, waiting []node) (excess []node) {
	excess = waiting[:max(len(waiting)-n, 0)]
	q.lists = make([]list, ports)
	q.resize(n)
	for _, w := range waiting[len(excess):] {
		q.push(w)
	}
	return excess
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

func (q *queue) evictions() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.evicted
}
