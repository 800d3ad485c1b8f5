package conntrack

import "lace-cni.io/lace/fastpath/packet"

// Insert puts both directions of a new flow into the table, or neither. fwd is what the
// client's packets carry, rev what the backend's replies carry. now is in ticks.
//
// When several workers meet the first packet of one tuple at the same time, one gets
// Inserted and the others Exists with the same flow, so that all forward to one backend.
// Exists may also be the reply direction of another flow (FlagReply). On Clash the
// caller may try again with another source port. An unconfirmed flow above the bound takes
// the place of the oldest one of its port.
//
// fwd and rev then refer to their slots, as after Lookup. Flag FlagReply is set here.
// Allocates nothing; up to six locks are held for some hundred nanoseconds.
func (t *Table) Insert(fwd, rev *Flow, now uint32) Result {
	var p pair
	if !p.encode(&t.Reader, fwd, rev) {
		return Invalid
	}
	l := t.lock(p.fh, p.rh)
	r := t.insert(&p, now)
	t.unlock(&l)
	if r != Inserted {
		return r
	}
	return t.admitted(fwd, rev, now)
}

func (t *Table) insert(p *pair, now uint32) Result {
	if n := t.locate(&p.fk, p.fh); n != 0 {
		t.slots[n].copyOut(&p.fk, p.fwd)
		p.fwd.slot = n
		return Exists
	}
	if p.fk == p.rk || t.locate(&p.rk, p.rh) != 0 {
		return Clash
	}
	if t.overShare(p.fwd.In) {
		return ShareFull
	}
	if !t.placePair(p) {
		return Full
	}
	t.occupy(p.fh, p.fslt)
	t.occupy(p.rh, p.rslt)
	t.write(p, now, 0)
	t.flows.Add(1)
	t.shares.add(p.fwd.In, 1)
	return Inserted
}

// placePair finds slots for both tuples. Where they share a bucket and one of them finds room
// in it alone, that one has to choose first.
func (t *Table) placePair(p *pair) bool {
	p.fslt = t.place(p.fh, 0)
	p.rslt = t.place(p.rh, p.fslt)
	if p.fslt != 0 && p.rslt == 0 {
		p.rslt = t.place(p.rh, 0)
		p.fslt = t.place(p.fh, p.rslt)
	}
	return p.fslt != 0 && p.rslt != 0
}

// admitted counts a new flow among the unconfirmed, if it is; without room it is taken out
// again.
func (t *Table) admitted(fwd, rev *Flow, now uint32) Result {
	q, refusal := &t.half, HalfOpenFull
	if fwd.Protocol != packet.ProtocolTCP {
		if !t.shares.inForce {
			return Inserted
		}
		q, refusal = &t.unanswered, ShareFull
	}
	if !q.waits(node{slot: fwd.slot, incarnation: fwd.incarnation, created: now}) || q.admit(t, fwd, now) {
		return Inserted
	}
	t.Delete(fwd)
	return refusal
}
