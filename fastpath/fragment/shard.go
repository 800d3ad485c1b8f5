package fragment

import (
	"sync"

	"lace-cni.io/lace/fastpath/reason"
)

// shard is a part of the table with a lock of its own.
type shard struct {
	mu       sync.Mutex
	buckets  []uint32
	list     []datagram // by index, from 1 on
	free     uint32     // by chain
	fresh    uint32     // from here on never used
	used     int
	ages     list
	accounts []account // by port id
	store    store

	secret       *secret
	perPort      uint32 // datagrams
	chunksOfPort uint32
	_            [64]byte // keep the next shard's lock off this cache line
}

func newShard(b *Bounds) shard {
	n := b.Datagrams / b.Shards
	buckets := 1
	for buckets < n {
		buckets *= 2
	}
	return shard{
		buckets: make([]uint32, buckets), list: make([]datagram, n+1), fresh: 1,
		accounts: make([]account, MaxPorts),
		store:    newStore(b.Held / b.Shards / chunkSize),
		perPort:  uint32(b.DatagramsPerPort / b.Shards), chunksOfPort: uint32(b.HeldPerPort / b.Shards / chunkSize),
	}
}

func (s *shard) bucket(hash uint64) *uint32 { return &s.buckets[hash>>32&uint64(len(s.buckets)-1)] }

// find returns the index of a datagram, 0 when it is not known.
func (s *shard) find(k *Key, hash uint64) uint32 {
	i := *s.bucket(hash)
	for i != 0 && s.list[i].key != *k {
		i = s.list[i].chain
	}
	return i
}

// add begins a datagram, whatever has to go for it.
func (s *shard) add(k *Key, hash uint64, owner uint16, now int64, lost *Losses) uint32 {
	if s.accounts[owner].datagrams >= s.perPort {
		s.evict(owner, lost)
	} else if s.used == len(s.list)-1 {
		s.evict(s.most(func(a *account) uint32 { return a.datagrams }), lost)
	}
	i := s.free
	if i != 0 {
		s.free = s.list[i].chain
	} else {
		i = s.fresh
		s.fresh++
	}
	s.used++
	d := &s.list[i]
	b := s.bucket(hash)
	d.key, d.owner, d.state, d.born = *k, owner, waiting, now
	d.chain, *b = *b, i
	d.first, d.last, d.frames, d.bytes, d.chunks = 0, 0, 0, 0, 0
	d.got.reset()
	s.enrol(i)
	s.accounts[owner].datagrams++
	s.line(i)
	return i
}

// enrol puts a datagram at the young end of all.
func (s *shard) enrol(i uint32) {
	d := &s.list[i]
	d.older, d.newer = s.ages.tail, 0
	if s.ages.tail != 0 {
		s.list[s.ages.tail].newer = i
	} else {
		s.ages.head = i
	}
	s.ages.tail = i
}

// line puts a datagram at the young end of the line of its owner and state.
func (s *shard) line(i uint32) {
	d := &s.list[i]
	l := &s.accounts[d.owner].lists[d.line()]
	d.prev, d.next = l.tail, 0
	if l.tail != 0 {
		s.list[l.tail].next = i
	} else {
		l.head = i
	}
	l.tail = i
}

func (s *shard) unline(i uint32) {
	d := &s.list[i]
	l := &s.accounts[d.owner].lists[d.line()]
	if d.prev != 0 {
		s.list[d.prev].next = d.next
	} else {
		l.head = d.next
	}
	if d.next != 0 {
		s.list[d.next].prev = d.prev
	} else {
		l.tail = d.prev
	}
}

// settle gives a datagram another state.
func (s *shard) settle(i uint32, to state) {
	s.unline(i)
	s.list[i].state = to
	s.line(i)
}

// remove forgets a datagram that holds nothing any more.
func (s *shard) remove(i uint32, hash uint64) {
	d := &s.list[i]
	s.unline(i)
	if d.older != 0 {
		s.list[d.older].newer = d.newer
	} else {
		s.ages.head = d.newer
	}
	if d.newer != 0 {
		s.list[d.newer].older = d.older
	} else {
		s.ages.tail = d.older
	}
	at := s.bucket(hash)
	for *at != i {
		at = &s.list[*at].chain
	}
	*at = d.chain
	s.accounts[d.owner].datagrams--
	s.used--
	d.chain, s.free = s.free, i
}

// letGo drops what a datagram holds.
func (s *shard) letGo(d *datagram, why reason.Reason, lost *Losses) {
	lost.Add(why, int(d.frames), int(d.bytes))
	for f := d.first; f != 0; {
		next := s.store.frame[f]
		s.store.drop(f)
		f = next
	}
	s.accounts[d.owner].chunks -= d.chunks
	d.first, d.last, d.frames, d.bytes, d.chunks = 0, 0, 0, 0, 0
}

func (s *shard) hashOf(k *Key) uint64 { return s.secret.hash(k) }
