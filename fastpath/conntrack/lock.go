package conntrack

import "sync"

// maxStripes bounds the number of locks; buckets share them.
const maxStripes = 1024

// stripe is a lock in a cache line of its own.
type stripe struct {
	sync.Mutex
	_ [56]byte
}

// lockset is the stripes of up to three tuples, ascending and each once, so that two
// writers never wait for each other in a circle.
type lockset struct {
	ids [9]uint32
	n   int
}

func (t *Table) lock(all ...homes) (l lockset) {
	for _, h := range all {
		for _, bucket := range h.buckets() {
			l.add(bucket & uint32(len(t.stripes)-1))
		}
	}
	for _, id := range l.ids[:l.n] {
		t.stripes[id].Lock()
	}
	return l
}

func (t *Table) unlock(l *lockset) {
	for _, id := range l.ids[:l.n] {
		t.stripes[id].Unlock()
	}
}

func (l *lockset) add(id uint32) {
	i := l.n
	for ; i > 0 && l.ids[i-1] >= id; i-- {
		if l.ids[i-1] == id {
			return
		}
	}
	copy(l.ids[i+1:], l.ids[i:l.n])
	l.ids[i] = id
	l.n++
}

// lockSlots locks the buckets of two slots.
func (t *Table) lockSlots(a, b uint32) lockset {
	return t.lock(homes{near: bucketOf(a), first: bucketOf(a), second: bucketOf(b)})
}

// lockSlot locks the bucket of one slot.
func (t *Table) lockSlot(n uint32) *stripe {
	s := &t.stripes[bucketOf(n)&uint32(len(t.stripes)-1)]
	s.Lock()
	return s
}
