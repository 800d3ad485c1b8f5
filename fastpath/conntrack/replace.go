package conntrack

// Replace gives the flow old, whose forward direction was looked up, a new decision: same
// forward tuple, another backend, state from the start. Readers see the old flow or the
// new one. Results are those of Insert but Exists and ShareFull, and Gone when old was meanwhile
// deleted or replaced: look it up again. Except on Inserted and HalfOpenFull (then the
// flow is gone) old stays as it was.
func (t *Table) Replace(old, fwd, rev *Flow, now uint32) Result {
	var p pair
	if old.Flags&FlagReply != 0 || old.Tuple != fwd.Tuple || !p.encode(&t.Reader, fwd, rev) {
		return Invalid
	}
	for {
		var a, b image
		if !t.readPair(old.slot, old.incarnation, &a, &b) {
			return Gone
		}
		h := t.homesOf(&b.key)
		l := t.lock(p.fh, p.rh, h)
		if !t.unchanged(old.slot, &a, &b) {
			t.unlock(&l)
			continue
		}
		r := t.exchange(&p, old.slot, a.peer, h, now)
		t.unlock(&l)
		if r != Inserted {
			return r
		}
		return t.admitted(fwd, rev, now)
	}
}

// exchange writes p over the flow in slot n, whose reply lives in slot reply and has
// homes h.
func (t *Table) exchange(p *pair, n, reply uint32, h homes, now uint32) Result {
	p.fslt = n
	in := t.slots[n].in()
	p.rslt = t.locate(&p.rk, p.rh)
	if p.rslt == reply {
		t.write(p, now, 0)
		t.moved(in, p.fwd.In)
		return Inserted
	}
	if p.rslt != 0 || p.fk == p.rk {
		return Clash
	}
	if p.rslt = t.place(p.rh, 0); p.rslt == 0 {
		return Full
	}
	t.occupy(p.rh, p.rslt)
	t.write(p, now, reply)
	t.vacate(h, reply)
	t.moved(in, p.fwd.In)
	return Inserted
}
