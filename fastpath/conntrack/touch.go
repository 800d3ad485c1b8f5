package conntrack

// Touch notes a packet of f: its bits and the time in ticks. f gets the new state. It
// reports false when the flow is gone, or was replaced, since f was looked up.
//
// A packet with ACK takes back an RST of its own direction: who still talks has not
// reset, so the RST was forged or stale, and the flow gets its long timeout back.
// Lock-free; writes only when a bit or the tick changes.
func (t *Table) Touch(f *Flow, bits State, now uint32) bool {
	s := t.slotOf(f)
	if s == nil {
		return false
	}
	for {
		w := s.state.Load()
		if stateIncarnation(w) != f.incarnation {
			return false
		}
		next := touched(w, bits, now)
		if next == w || s.state.CompareAndSwap(w, next) {
			f.State, f.LastSeen = stateBits(next), uint32(next)
			return true
		}
	}
}

// touched is the state word after a packet. The clock of another worker may be ahead.
func touched(w uint64, bits State, now uint32) uint64 {
	seen := uint32(w)
	if int32(now-seen) > 0 {
		seen = now
	}
	all := stateBits(w)
	if bits&(StateACK|StateRST) == StateACK {
		all &^= StateRST
	}
	return stateWord(seen, all|bits, stateIncarnation(w))
}

// Restamp notes that the decision about this direction of f holds under new generations,
// with this target, which becomes the port on which the other direction comes in. It
// reports false when the flow is gone. One or two locks; the slots' sequences do not
// move, so copies of f remain good, but for In of the other direction.
func (t *Table) Restamp(f *Flow, s Stamp, target uint16) bool {
	return t.both(f, func(this, other *slot) {
		this.stamp.Store(s.word(target))
		if !other.reply() {
			t.moved(other.in(), target)
		}
		other.sums.Store(withIn(other.sums.Load(), target))
		f.Stamp, f.Target = s, target
	})
}

// SetMode says who moves the packets of this direction of f from now on. It reports
// false when the flow is gone or the mode unknown. One lock.
func (t *Table) SetMode(f *Flow, m Mode) bool {
	s := t.slotOf(f)
	if s == nil || m > lastMode {
		return false
	}
	defer t.lockSlot(f.slot).Unlock()
	if stateIncarnation(s.state.Load()) != f.incarnation {
		return false
	}
	s.setMode(m)
	f.Mode = m
	return true
}

// InstallPair hands both directions of f to the kernel. It reports false when the flow is
// gone, or was replaced, since f was looked up. One or two locks, no sequence moves.
func (t *Table) InstallPair(f *Flow) bool {
	return t.both(f, func(this, other *slot) {
		other.setMode(ModeLane)
		this.setMode(ModeLane)
		f.Mode = ModeLane
	})
}

func (s *slot) setMode(m Mode) {
	s.marks.Store(s.marks.Load()&^(0xff<<modeShift) | uint32(m)<<modeShift)
}

// both calls change with the slots of both directions of f, locked. It reports false,
// without a call, when the flow is gone.
func (t *Table) both(f *Flow, change func(this, other *slot)) bool {
	s := t.slotOf(f)
	if s == nil {
		return false
	}
	peer := s.peer.Load()
	if !t.inTable(peer) {
		return false
	}
	l := t.lockSlots(f.slot, peer)
	defer t.unlock(&l)
	// As long as the incarnation is f's the pair is the same: who writes one direction
	// holds the locks of both.
	if stateIncarnation(s.state.Load()) != f.incarnation || s.peer.Load() != peer {
		return false
	}
	change(s, &t.slots[peer])
	return true
}
