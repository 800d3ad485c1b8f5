package conntrack

import "lace-cni.io/lace/fastpath/packet"

// silence is how many ticks a closed connection is left alone even when its place is
// needed, about one second: what is still under way of it mostly arrives by then.
const silence = 15

// Reclaim makes room for a pair that Insert has refused as Full: where no slot is free
// for one of its tuples, the closed TCP connection there that has been silent for longest
// is taken out before its time. No other flow is touched. It reports whether Insert may
// succeed now. Many short connections can thus follow each other faster than their
// tombstones expire.
//
// now is in ticks. Costs some hundred nanoseconds; allocates nothing.
func (t *Table) Reclaim(fwd, rev *Tuple, now uint32) bool {
	var f, r key
	if !f.encode(fwd) || !r.encode(rev) {
		return false
	}
	slot := t.relieve(t.homesOf(&f), 0, now, anyPort)
	return slot != 0 && t.relieve(t.homesOf(&r), slot, now, anyPort) != 0
}

// ReclaimOwn makes room in the share of fwd's port, when Insert has refused the flow as
// ShareFull: of the closed connections of that port near fwd's place, the one that has been
// silent for longest is taken out. Otherwise as Reclaim.
func (t *Table) ReclaimOwn(fwd *Flow, now uint32) bool {
	var k key
	if !k.encode(&fwd.Tuple) {
		return false
	}
	return t.relieve(t.homesOf(&k), 0, now, int(fwd.In)) != 0
}

// anyPort is for relieve.
const anyPort = -1

// relieve is a slot in the buckets of h, other than taken, that is free, if need be after
// a tombstone was taken out; 0 when there is none. Given a port, it is one that a tombstone
// of that port has left.
func (t *Table) relieve(h homes, taken, now uint32, port int) uint32 {
	best, bestIdle, incarnation := uint32(0), int32(silence-1), uint16(0)
	for _, bucket := range h.buckets() {
		first := firstSlot(bucket)
		for n := first; n < first+BucketSlots; n++ {
			if n == taken {
				continue
			}
			if !t.tagged(n) {
				if port == anyPort {
					return n
				}
				continue
			}
			if port != anyPort && int(t.clientPort(n, t.slots[n].peer.Load())) != port {
				continue
			}
			if idle, in, ok := t.tombstone(n, now); ok && idle > bestIdle {
				best, bestIdle, incarnation = n, idle, in
			}
		}
	}
	if best == 0 || !t.take(best, incarnation, closed) {
		return 0
	}
	return best
}

// tombstone reports whether slot n is part of a closed connection, and for how many ticks
// neither direction has seen a packet.
func (t *Table) tombstone(n, now uint32) (idle int32, incarnation uint16, ok bool) {
	s := &t.slots[n]
	if uint8(s.key.Load()>>32) != packet.ProtocolTCP {
		return 0, 0, false
	}
	w, peer := s.state.Load(), s.peer.Load()
	if !t.inTable(peer) {
		return 0, 0, false
	}
	other := t.slots[peer].state.Load()
	idle = min(int32(now-uint32(w)), int32(now-uint32(other)))
	return idle, stateIncarnation(w), closed(w, other)
}

// closed is a condition for take. It does not matter which of the two is the client's.
func closed(a, b uint64) bool { return TCPState(stateBits(a), stateBits(b)) == Closed }
