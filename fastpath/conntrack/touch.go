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
// with this target. It reports false when the flow is gone. One lock; the slot's
// sequence does not move, so copies of f remain good.
func (t *Table) Restamp(f *Flow, s Stamp, target uint16) bool {
	sl := t.slotOf(f)
	if sl == nil {
		return false
	}
	defer t.lockSlot(f.slot).Unlock()
	if stateIncarnation(sl.state.Load()) != f.incarnation {
		return false
	}
	sl.stamp.Store(s.word(target))
	f.Stamp, f.Target = s, target
	return true
}

// SetMode says who moves the packets of this direction of f from now on. It reports
// false when the flow is gone or the mode unknown. One lock.
func (t *Table) SetMode(f *Flow, m Mode) bool {
	s := t.slotOf(f)
	if s == nil || m > ModePass {
		return false
	}
	defer t.lockSlot(f.slot).Unlock()
	if stateIncarnation(s.state.Load()) != f.incarnation {
		return false
	}
	s.marks.Store(s.marks.Load()&^(0xff<<modeShift) | uint32(m)<<modeShift)
	f.Mode = m
	return true
}
