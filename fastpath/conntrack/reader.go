package conntrack

import "runtime"

// Reader looks flows up and changes nothing. Any number of goroutines may share one.
// Its memory must stay mapped as long as it is used.
type Reader struct {
	slots   []slot
	records []record // one for each bucket
	mask    uint32   // number of buckets less one
	keys    hashKeys
}

// Keys are the secret keys of the hash, for the BPF programs.
func (r *Reader) Keys() [10]uint32 { return r.keys }

// Buckets is the number of buckets, a power of two.
func (r *Reader) Buckets() int { return int(r.mask) + 1 }

// Cap is the number of flows that would fill every slot. The table refuses single flows
// earlier: none to speak of up to half, about one in a thousand at three quarters.
func (r *Reader) Cap() int { return r.Buckets() * BucketSlots / 2 }

// A slot is odd for some hundred nanoseconds, unless its writer lost the processor; after
// patience rounds the reader lets others run, after maxRounds it calls the flow absent.
const (
	patience  = 64
	maxRounds = 4096
)

func pause(round int) {
	if round > patience {
		runtime.Gosched()
	}
}

// Lookup copies the flow with tuple t into f. It reports false, and leaves f unspecified,
// when there is none. t may be a part of f.
//
// A flow that is being inserted or deleted meanwhile may be found or not; a writer that
// stands still inside a slot counts as not found. Insert knows better: it waits.
// Lock-free; 15 to 20 ns when record and slot are in the cache, else a miss of cache and
// TLB for each. When there is no flow, one for the record.
func (r *Reader) Lookup(t *Tuple, f *Flow) bool {
	var k key
	if !k.encode(t) {
		return false
	}
	h := r.homesOf(&k)
	if !r.scan(h.near, h.tag, &k, f) && (r.spill(h.near) == 0 || !r.away(&h, &k, f)) {
		return false
	}
	f.Tuple = *t
	return true
}

// away looks where a flow lives that is not near.
func (r *Reader) away(h *homes, k *key, f *Flow) bool {
	return r.scan(h.first, h.tag, k, f) || r.overflow(h.first) != 0 && r.scan(h.second, h.tag, k, f)
}

// spill is the number of flows that have bucket as their near one and live elsewhere.
func (r *Reader) spill(bucket uint32) uint32 { return r.records[bucket].spill.Load() }

// overflow is the number of flows that have bucket as their first one and live in their second.
func (r *Reader) overflow(bucket uint32) uint32 { return r.records[bucket].overflow.Load() }

func firstSlot(bucket uint32) uint32 { return 1 + bucket*BucketSlots }
func bucketOf(slot uint32) uint32    { return (slot - 1) / BucketSlots }
func placeOf(slot uint32) uint32     { return (slot - 1) % BucketSlots }

// scan looks for k in a bucket and copies its flow, tuple excepted, into f.
func (r *Reader) scan(bucket uint32, tag uint8, k *key, f *Flow) bool {
	for marks := equals(r.records[bucket].tags.Load(), tag); marks != 0; marks &= marks - 1 {
		if n := firstSlot(bucket) + lowest(marks); r.slots[n].copyOut(k, f) {
			f.slot = n
			return true
		}
	}
	return false
}

// holds reports whether the slot's tuple is k.
func (s *slot) holds(k *key) bool {
	if s.key.Load() != k.word || s.low.Load() != k.low {
		return false
	}
	return !k.v6() || s.high[0].Load() == k.high[0] && s.high[1].Load() == k.high[1] && s.high[2].Load() == k.high[2]
}

// copyOut copies what the slot holds for k, tuple and slot number excepted. It reports
// false when the slot holds another tuple.
func (s *slot) copyOut(k *key, f *Flow) bool {
	for round := range maxRounds {
		seq := s.seq.Load()
		if !s.holds(k) {
			return false
		}
		if seq&1 != 0 {
			pause(round)
			continue
		}
		var newHigh [3]uint64
		if k.v6() {
			newHigh = [3]uint64{s.newHigh[0].Load(), s.newHigh[1].Load(), s.newHigh[2].Load()}
		}
		newLow, sums, owner := s.newLow.Load(), s.sums.Load(), s.owner.Load()
		state, stamp, marks := s.state.Load(), s.stamp.Load(), s.marks.Load()
		if s.seq.Load() != seq {
			continue
		}
		if k.v6() {
			unpack6(newLow, &newHigh, &f.Rewrite.Src, &f.Rewrite.Dst)
		} else {
			unpack4(newLow, &f.Rewrite.Src, &f.Rewrite.Dst)
		}
		f.fill(k.word, sums, owner, state, stamp, marks)
		f.incarnation = incarnationOf(seq)
		return true
	}
	return false
}

// fill decodes the words that need no family.
func (f *Flow) fill(key, sums, owner, state, stamp uint64, marks uint32) {
	f.Rewrite.SrcPort, f.Rewrite.DstPort = portOf(uint16(sums)), portOf(uint16(sums>>16))
	f.Rewrite.L3, f.Rewrite.L4, f.In = uint16(sums>>32), l4Of(key, sums), uint16(sums>>inShift)
	f.Frontend, f.Backend = uint32(owner), uint32(owner>>32)
	f.Stamp, f.Target = stampOf(stamp), uint16(stamp)
	f.Mode, f.Flags = Mode(marks>>modeShift), Flags(marks>>flagsShift)
	f.State, f.LastSeen = stateBits(state), uint32(state)
}

// Peer copies the other direction of f into out. It reports false when f is gone.
// Lock-free. Two cache misses more than Lookup.
func (r *Reader) Peer(f, out *Flow) bool {
	s := r.slotOf(f)
	if s == nil {
		return false
	}
	peer := s.peer.Load()
	if stateIncarnation(s.state.Load()) != f.incarnation || !r.inTable(peer) {
		return false
	}
	var im image
	if !im.read(&r.slots[peer]) || im.peer != f.slot {
		return false
	}
	im.flow(peer, out)
	// Had f been gone before the peer was read, its slot would show it by now.
	return stateIncarnation(s.state.Load()) == f.incarnation
}

// Range calls visit with the forward direction of every flow, in no order, until it
// returns false. Peer gives the other direction. Flows that come or go meanwhile may be
// visited or not. The Flow is reused from call to call. One allocation; touches the
// whole table.
func (r *Reader) Range(visit func(*Flow) bool) {
	var im image
	f := new(Flow)
	for i := range r.slots[1:] {
		n := uint32(i) + 1
		if !r.tagged(n) || !im.read(&r.slots[n]) || im.reply() {
			continue
		}
		im.flow(n, f)
		if !visit(f) {
			return
		}
	}
}

func (r *Reader) inTable(slot uint32) bool { return slot != 0 && int(slot) < len(r.slots) }

// slotOf is the slot f was copied from, nil when f was not copied out of this table.
func (r *Reader) slotOf(f *Flow) *slot {
	if !r.inTable(f.slot) {
		return nil
	}
	return &r.slots[f.slot]
}
