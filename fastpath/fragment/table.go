package fragment

import "lace-cni.io/lace/fastpath/reason"

// Table is what is known of unfinished datagrams. Safe for concurrent use.
type Table struct {
	secret secret
	shards []shard
	// Idents numbers the datagrams that are rewritten.
	Idents Idents
}

// New makes an empty table. Its memory is bounded from the start and used bit by bit.
func New(b Bounds) (*Table, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	t := &Table{secret: newSecret(), shards: make([]shard, b.Shards)}
	for i := range t.shards {
		t.shards[i] = newShard(&b)
		t.shards[i].secret = &t.secret
	}
	t.Idents.start()
	return t, nil
}

// Meeting is what Meet says of a fragment.
type Meeting uint8

const (
	Decides Meeting = iota // the first one: decide, then call Decide
	Follows                // the first one's fate is known
	Held                   // copied until the first one comes
	Refused                // to be dropped
)

func (t *Table) lock(k *Key) (s *shard, hash uint64) {
	hash = t.secret.hash(k)
	s = &t.shards[uint32(hash)%uint32(len(t.shards))]
	s.mu.Lock()
	return s, hash
}

// Meet notes a fragment, met on port owner at now (nanoseconds, monotonic). fate is filled
// when the fragment Follows; the reason says why it is Refused. A fragment that is Held is
// frame, of which the table has a copy then.
func (t *Table) Meet(k *Key, owner uint16, p Piece, frame []byte, now int64, fate *Fate, lost *Losses) (Meeting, reason.Reason) {
	owner %= MaxPorts
	s, hash := t.lock(k)
	defer s.mu.Unlock()
	s.expire(now, expireAtOnce, lost)
	i := s.find(k, hash)
	if i == 0 {
		i = s.add(k, hash, owner, now, lost)
	}
	d := &s.list[i]
	if d.state == bad {
		return Refused, d.why
	}
	switch d.got.add(p) {
	case duplicate:
		return Refused, reason.FragmentDuplicate
	case overlap:
		s.spoil(i, reason.FragmentOverlap, lost)
		return Refused, reason.FragmentOverlap
	case tooMany:
		s.spoil(i, reason.FragmentTableFull, lost)
		return Refused, reason.FragmentTableFull
	}
	if d.state == decided {
		*fate = d.fate
		if d.got.complete() {
			s.remove(i, hash)
		}
		return Follows, reason.None
	}
	if p.From == 0 {
		return Decides, reason.None
	}
	return s.hold(i, frame, lost)
}

// hold keeps a copy of a fragment.
func (s *shard) hold(i uint32, frame []byte, lost *Losses) (Meeting, reason.Reason) {
	d := &s.list[i]
	chunks := chunksOf(len(frame))
	if len(frame) > maxFrame || !s.makeRoom(i, chunks, lost) {
		s.spoil(i, reason.FragmentTableFull, lost)
		return Refused, reason.FragmentTableFull
	}
	f := s.store.put(frame)
	if d.last != 0 {
		s.store.frame[d.last] = f
	} else {
		d.first = f
	}
	d.last = f
	d.frames++
	d.bytes += uint32(len(frame))
	d.chunks += uint32(chunks)
	s.accounts[d.owner].chunks += uint32(chunks)
	return Held, reason.None
}

// spoil gives a datagram up and remembers why.
func (s *shard) spoil(i uint32, why reason.Reason, lost *Losses) {
	d := &s.list[i]
	s.letGo(d, why, lost)
	s.settle(i, bad)
	d.why = why
}

// Refuse gives a datagram up, of which the caller has seen a fragment that must not be
// followed. Fragments that are held go with it, and those that come are Refused with why.
func (t *Table) Refuse(k *Key, owner uint16, why reason.Reason, now int64, lost *Losses) {
	s, hash := t.lock(k)
	defer s.mu.Unlock()
	i := s.find(k, hash)
	if i == 0 {
		i = s.add(k, hash, owner%MaxPorts, now, lost)
	}
	if s.list[i].state != bad {
		s.spoil(i, why, lost)
	}
}

// Decide tells the fate of a datagram whose first fragment Decides. The fragments that were
// held are the caller's: to be fetched by Next, every one, when the fate forwards or passes;
// otherwise they are dropped with its reason.
func (t *Table) Decide(k *Key, fate *Fate, lost *Losses) (r Released) {
	s, hash := t.lock(k)
	defer s.mu.Unlock()
	i := s.find(k, hash)
	d := &s.list[i]
	if i == 0 || d.state != waiting {
		return r // given up meanwhile
	}
	switch fate.Reason.Class() {
	case reason.ClassForward, reason.ClassPass:
		r = Released{shard: s, first: d.first, owner: d.owner}
		d.first, d.last, d.frames, d.bytes, d.chunks = 0, 0, 0, 0, 0
	default:
		s.letGo(d, fate.Reason, lost)
	}
	if d.got.complete() {
		s.remove(i, hash)
		return r
	}
	d.fate = *fate
	s.settle(i, decided)
	return r
}

// Unfinished is the number of datagrams that are remembered.
func (t *Table) Unfinished() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.used
		s.mu.Unlock()
	}
	return n
}

// HeldBytes is the memory that held fragments use.
func (t *Table) HeldBytes() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.store.used * chunkSize
		s.mu.Unlock()
	}
	return n
}
