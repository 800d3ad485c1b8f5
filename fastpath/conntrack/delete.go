package conntrack

// Delete takes both directions of f, either of which may be given, out of the table. It
// reports false when the flow was gone already.
func (t *Table) Delete(f *Flow) bool { return t.take(f.slot, f.incarnation, nil) }

// take removes the flow that has one direction in slot n, provided that, under the
// locks, still agrees; nil agrees always. It is given the state bits and last-seen words
// of slot n and of its peer.
func (t *Table) take(n uint32, incarnation uint16, still func(a, b uint64) bool) bool {
	for {
		var a, b image
		if !t.readPair(n, incarnation, &a, &b) {
			return false
		}
		ha, hb := t.homesOf(&a.key), t.homesOf(&b.key)
		l := t.lock(ha, hb)
		if !t.unchanged(n, &a, &b) {
			t.unlock(&l)
			continue
		}
		ok := still == nil || still(t.slots[n].state.Load(), t.slots[a.peer].state.Load())
		if ok {
			t.shares.add(t.clientPort(n, a.peer), -1)
			t.erase(n, a.peer)
			t.vacate(ha, n)
			t.vacate(hb, a.peer)
			t.flows.Add(-1)
		}
		t.unlock(&l)
		return ok
	}
}

// readPair copies slot n and its peer. It reports false when the flow of that
// incarnation is gone.
func (t *Table) readPair(n uint32, incarnation uint16, a, b *image) bool {
	if !t.inTable(n) {
		return false
	}
	for {
		if !a.read(&t.slots[n]) || a.incarnation() != incarnation || !t.inTable(a.peer) {
			return false
		}
		if b.read(&t.slots[a.peer]) && b.peer == n {
			return true
		}
		if t.slots[n].seq.Load() == a.seq {
			return false // cannot happen in a table that Map has accepted
		}
	}
}

// unchanged reports, under the locks, whether the pair is still what was read.
func (t *Table) unchanged(n uint32, a, b *image) bool {
	return t.slots[n].seq.Load() == a.seq && t.slots[a.peer].seq.Load() == b.seq
}
