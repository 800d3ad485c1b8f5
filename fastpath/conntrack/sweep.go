package conntrack

import "sync"

// sweeper is where the last Sweep stopped.
type sweeper struct {
	sync.Mutex
	next uint32
	flow Flow // lent to gone, so that a sweep allocates nothing
}

// Sweep looks at the next budget slots, begins again behind the last, and takes out the
// flows that have expired at now (in ticks) and those for whose forward direction gone,
// if not nil, returns true. It returns how many it took out.
//
// Whichever worker calls it sweeps; the others get 0 at once meanwhile. gone must not
// keep the Flow and not call Sweep. Some 5 ns for each slot, and for each flow that is not
// in the cache another microsecond.
func (t *Table) Sweep(now uint32, budget int, timeouts *Timeouts, gone func(*Flow) bool) (expired int) {
	if !t.sweeping.TryLock() {
		return 0
	}
	defer t.sweeping.Unlock()
	for range min(budget, len(t.slots)-1) {
		t.sweeping.next++
		if int(t.sweeping.next) >= len(t.slots) {
			t.sweeping.next = 1
		}
		if t.sweepSlot(t.sweeping.next, now, timeouts, gone) {
			expired++
		}
	}
	t.half.tidy(1 + budget/16)
	t.unanswered.tidy(1 + budget/16)
	return expired
}

func (t *Table) sweepSlot(n, now uint32, timeouts *Timeouts, gone func(*Flow) bool) bool {
	s := &t.slots[n]
	if !t.tagged(n) || s.marks.Load()&replyMark != 0 {
		return false
	}
	var im image
	if !im.read(s) || im.reply() || !t.inTable(im.peer) {
		return false
	}
	protocol := uint8(im.key.word >> 32)
	old := func(a, b uint64) bool { return timeouts.expired(protocol, a, b, now) }
	if old(im.state, t.slots[im.peer].state.Load()) {
		return t.take(n, im.incarnation(), old)
	}
	if gone == nil {
		return false
	}
	im.flow(n, &t.sweeping.flow)
	return gone(&t.sweeping.flow) && t.take(n, im.incarnation(), nil)
}
