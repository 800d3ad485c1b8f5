package conntrack

// checksPerDatagramFlow is less than checksPerConnection: those that were answered leave
// the queue at its end anyway, and each look costs two misses of the cache.
const checksPerDatagramFlow = 1

// accepted is after how many ticks, about one second, a flow that its client goes on using
// is not taken for one of a flood, though nobody answers: some protocols go one way.
const accepted = 15

// UnansweredMax is the bound of datagram flows that nobody has answered.
func (t *Table) UnansweredMax() int { return t.unanswered.max() }

func (t *Table) defaultUnansweredMax() int { return max(t.Cap()/4, 1) }

// Unanswered is the number of datagram flows (of UDP and SCTP) that nobody has answered, or
// somewhat more.
func (t *Table) Unanswered() int { return t.unanswered.length() }

// UnansweredEvicted counts the unanswered flows that had to give way since the start.
func (t *Table) UnansweredEvicted() uint64 { return t.unanswered.evictions() }

// Answered reports whether a reply to f, the client's direction of a flow that is there, was
// seen, by Go or by the kernel. Lock-free; two loads, the second mostly out of the cache.
func (r *Reader) Answered(f *Flow) bool {
	s := r.slotOf(f)
	if s == nil {
		return false
	}
	peer := s.peer.Load()
	if stateIncarnation(s.state.Load()) != f.incarnation || !r.inTable(peer) {
		return false
	}
	seen := stateBits(r.slots[peer].state.Load())&StateSeen != 0
	return seen && stateIncarnation(s.state.Load()) == f.incarnation
}

// silent reports whether the flow of n is there, was never answered, and has not been in
// use for a while.
func (t *Table) silent(n node) bool {
	fwd, rev, ok := t.states(n)
	return ok && stateBits(rev)&StateSeen == 0 && int32(uint32(fwd)-n.created) < accepted
}
