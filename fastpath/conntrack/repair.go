package conntrack

import "lace-cni.io/lace/fastpath/packet"

// Repair after the last writer was killed. The kernel reads, and notes packets, at the
// same time; so slots that are whole are not written at all, nor tag records that are
// right. What the records say does not count: they are worked out from the slots.

func (t *Table) repair(report *Report) {
	for n := uint32(1); int(n) < len(t.slots); n++ {
		t.repairSlot(n, report)
	}
	clear(t.shares.flows)
	holds := make([]holding, t.Buckets())
	var waiting, silent []node
	for n := uint32(1); int(n) < len(t.slots); n++ {
		var im image
		if !im.read(&t.slots[n]) {
			continue
		}
		if !t.paired(n, &im) {
			t.wipe(n)
			report.Half++
			continue
		}
		h := t.homesOf(&im.key)
		holds[bucketOf(n)].tags |= uint64(h.tag) << (8 * placeOf(n))
		if b := bucketOf(n); b != h.near {
			holds[h.near].spill++
			if b != h.first {
				holds[h.first].overflow++
			}
		}
		if im.reply() {
			continue
		}
		report.Flows++
		t.shares.add(uint16(im.sums>>inShift), 1)
		w := node{slot: n, incarnation: im.incarnation(), created: t.slots[n].created.Load(), port: uint16(im.sums >> inShift)}
		switch tcp := uint8(im.key.word>>32) == packet.ProtocolTCP; {
		case tcp && t.halfOpen(w):
			waiting = append(waiting, w)
		case !tcp && t.silent(w):
			silent = append(silent, w)
		}
	}
	for b := range holds {
		t.records[b].put(holds[b].tags, holds[b].overflow, holds[b].spill)
	}
	t.flows.Store(int64(report.Flows))
	t.half.requeue(waiting)
	t.unanswered.requeue(silent)
}

// holding is what a record has to be.
type holding struct {
	tags            uint64
	overflow, spill uint32
}

// repairSlot takes out what is wrong with one slot by itself.
func (t *Table) repairSlot(n uint32, report *Report) {
	s := &t.slots[n]
	var im image
	switch {
	case s.seq.Load()&1 != 0:
		report.Torn++
	case !im.read(s):
		return
	case !t.sound(n, &im):
		report.Damaged++
	default:
		return
	}
	t.wipe(n)
}

// sound reports whether a writer could have written the slot, and a reader would find it.
func (t *Table) sound(n uint32, im *image) bool {
	h, b := t.homesOf(&im.key), bucketOf(n)
	var f Flow
	var again key
	im.flow(n, &f)
	return again.encode(&f.Tuple) && again == im.key && f.Rewrite.sameFamily(im.key.v6()) &&
		(b == h.near || b == h.first || b == h.second) &&
		stateIncarnation(im.state) == im.incarnation() &&
		im.marks>>modeShift&0xff <= uint32(lastMode) &&
		im.marks>>flagsShift&^uint32(knownFlags) == 0 &&
		t.only(n, &im.key, h)
}

// only reports whether n is the first slot with its tuple.
func (t *Table) only(n uint32, k *key, h homes) bool {
	for _, bucket := range h.buckets() {
		first := firstSlot(bucket)
		for m := first; m < first+BucketSlots; m++ {
			if t.slots[m].holds(k) {
				return m == n
			}
		}
	}
	return false
}

// paired reports whether the slot's peer is its peer. The relation is symmetric, so that
// wiping one that is not never parts others.
func (t *Table) paired(n uint32, im *image) bool {
	var peer image
	return t.inTable(im.peer) && im.peer != n && peer.read(&t.slots[im.peer]) && peer.peer == n &&
		peer.reply() != im.reply() &&
		uint8(peer.key.word>>32) == uint8(im.key.word>>32) &&
		peer.key.v6() == im.key.v6()
}

func (t *Table) wipe(n uint32) {
	s := &t.slots[n]
	odd := s.seq.Load()
	if odd&1 == 0 {
		odd = s.open()
	}
	s.clear(odd)
	s.close(odd)
}

// requeue enters the unconfirmed flows found, oldest first. All of them stay: how many
// half-open connections are permitted is not known before SetHalfOpenMax.
func (q *queue) requeue(waiting []node) {
	byAge(waiting)
	q.rebuild(max(q.max(), len(waiting)), len(q.lists), waiting)
}
