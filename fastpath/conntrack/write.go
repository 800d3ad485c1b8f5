package conntrack

// Writing. All of it runs under the locks of the buckets concerned. A pair is written
// and tagged with both sequences odd, and the tags go before the slots are cleared, so
// that whoever finds one direction finds the other.

// open makes the sequence odd and returns it.
func (s *slot) open() uint32 { return s.seq.Add(1) }

// openBoth makes two sequences odd. Both are read first: the processor then waits for two
// slots that are not in its cache at once, not for one after the other.
func openBoth(a, b *slot) (aodd, bodd uint32) {
	aodd, bodd = a.seq.Load()+1, b.seq.Load()+1
	a.seq.Store(aodd)
	b.seq.Store(bodd)
	return aodd, bodd
}

// close makes the odd sequence even again.
func (s *slot) close(odd uint32) { s.seq.Store(odd + 1) }

// write fills an open slot, and notes in f where it lives.
func (s *slot) write(n, odd uint32, k *key, f *Flow, peer, now uint32) {
	f.slot, f.incarnation, f.LastSeen = n, incarnationOf(odd+1), now
	var newLow uint64
	var newHigh [3]uint64
	pack(&f.Rewrite.Src, &f.Rewrite.Dst, &newLow, &newHigh)
	put64(&s.state, stateWord(now, f.State, f.incarnation))
	put32(&s.marks, uint32(f.Mode)<<modeShift|uint32(f.Flags)<<flagsShift)
	put64(&s.key, k.word)
	put64(&s.low, k.low)
	put64(&s.newLow, newLow)
	sums := sumsWord(&f.Rewrite, f.In)
	f.Rewrite.L4 = l4Of(k.word, sums)
	put64(&s.sums, sums)
	put64(&s.owner, uint64(f.Frontend)|uint64(f.Backend)<<32)
	put64(&s.stamp, f.Stamp.word(f.Target))
	if k.v6() {
		for i := range 3 {
			put64(&s.high[i], k.high[i])
			put64(&s.newHigh[i], newHigh[i])
		}
	}
	put32(&s.peer, peer)
	put32(&s.packets, 0)
	put32(&s.created, now)
}

// clear empties an open slot. Its new incarnation turns late notes away.
func (s *slot) clear(odd uint32) {
	put64(&s.state, stateWord(0, 0, incarnationOf(odd+1)))
	put64(&s.key, 0)
	put64(&s.low, 0)
	put32(&s.marks, 0)
	put32(&s.peer, 0)
}

// pair is both directions of a flow on their way into the table.
type pair struct {
	fwd, rev   *Flow
	fk, rk     key
	fh, rh     homes
	fslt, rslt uint32
}

// encode reports false for a pair that the table cannot hold.
func (p *pair) encode(r *Reader, fwd, rev *Flow) bool {
	p.fwd, p.rev = fwd, rev
	if !p.fk.encode(&fwd.Tuple) || !p.rk.encode(&rev.Tuple) || fwd.Protocol != rev.Protocol ||
		fwd.Mode > lastMode || rev.Mode > lastMode ||
		!fwd.Rewrite.sameFamily(p.fk.v6()) || !rev.Rewrite.sameFamily(p.rk.v6()) || p.fk.v6() != p.rk.v6() {
		return false
	}
	fwd.Flags = fwd.Flags & knownFlags &^ FlagReply
	rev.Flags = rev.Flags&knownFlags | FlagReply
	p.fh, p.rh = r.homesOf(&p.fk), r.homesOf(&p.rk)
	return true
}

func (r *Rewrite) sameFamily(v6 bool) bool { return r.Src.Is4() == !v6 && r.Dst.Is4() == !v6 }

// write puts the pair into its two slots. When they replace a flow whose reply lived
// elsewhere, gone is that slot, else 0.
func (t *Table) write(p *pair, now, gone uint32) {
	f, r := &t.slots[p.fslt], &t.slots[p.rslt]
	fodd, rodd := openBoth(f, r)
	r.write(p.rslt, rodd, &p.rk, p.rev, p.fslt, now)
	f.write(p.fslt, fodd, &p.fk, p.fwd, p.rslt, now)
	t.setTag(p.rslt, p.rh.tag)
	t.setTag(p.fslt, p.fh.tag)
	if gone == 0 {
		r.close(rodd)
		f.close(fodd)
		return
	}
	t.setTag(gone, 0)
	g := &t.slots[gone]
	odd := g.open()
	r.close(rodd)
	f.close(fodd)
	g.clear(odd)
	g.close(odd)
}

// erase clears the two slots of a flow.
func (t *Table) erase(a, b uint32) {
	t.setTag(a, 0)
	t.setTag(b, 0)
	f, r := &t.slots[a], &t.slots[b]
	fodd, rodd := openBoth(f, r)
	f.clear(fodd)
	r.clear(rodd)
	f.close(fodd)
	r.close(rodd)
}
