package affinity

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"sync"
)

var magic = [8]byte{'L', 'A', 'C', 'E', 'A', 'F', 'F', 'I'}

// layout is the version of what lies in memory; memory of another one is emptied.
const layout = 1

// stripes is how many locks the buckets share.
const stripes = 256

// Table remembers. Any number of goroutines of one process may use it.
type Table struct {
	head    *head
	buckets []bucket
	mask    uint64
	locks   [stripes]sync.Mutex
}

// New makes a table of n records at least, in plain memory.
func New(n int) *Table {
	words := make([]uint64, (1+roundUp(n))*BucketSize/8)
	t, err := Map(bytesOf(words))
	if err != nil {
		panic(err) // the memory is large enough and aligned
	}
	return t
}

// Map takes over a table in memory that somebody else keeps, or makes one of it: whatever
// else it holds is given up. Only one process at a time may have it. An error says that the
// memory cannot hold a table.
func Map(mem []byte) (*Table, error) {
	h, buckets, err := view(mem)
	if err != nil {
		return nil, err
	}
	n := 1 << (bits.Len(uint(len(buckets))) - 1)
	t := &Table{head: h, buckets: buckets[:n], mask: uint64(n - 1)}
	if h.Magic != magic || h.Layout != layout || h.Buckets != uint32(n) {
		clear(mem)
		*h = head{Layout: layout, Buckets: uint32(n), Secret: secret()}
		h.Magic = magic // last: without it the rest does not count
	}
	return t, nil
}

// Memory is the number of bytes that a table of n records at least takes.
func Memory(n int) int { return (1 + roundUp(n)) * BucketSize }

// roundUp is the number of buckets for n records.
func roundUp(n int) int { return 1 << bits.Len(uint(max(1, (n+bucketRecords-1)/bucketRecords)-1)) }

func secret() (s [4]uint64) {
	var b [32]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(b[8*i:]) | 1
	}
	return s
}

// Cap is how many clients the table has room for.
func (t *Table) Cap() int { return len(t.buckets) * bucketRecords }

// Len counts the records, those whose time is over among them. It walks the table.
func (t *Table) Len() (n int) {
	for i := range t.buckets {
		t.locks[i%stripes].Lock()
		for j := range t.buckets[i] {
			if t.used(&t.buckets[i][j]) {
				n++
			}
		}
		t.locks[i%stripes].Unlock()
	}
	return n
}

// homes are the two buckets of a client; they may be one.
func (t *Table) homes(k *Key) (a, b uint64) {
	h := t.hash(k)
	return h & t.mask, h >> 32 & t.mask
}

// lock takes the locks of both buckets, always in the same order.
func (t *Table) lock(a, b uint64) {
	a, b = a%stripes, b%stripes
	t.locks[min(a, b)].Lock()
	if a != b {
		t.locks[max(a, b)].Lock()
	}
}

func (t *Table) unlock(a, b uint64) {
	a, b = a%stripes, b%stripes
	t.locks[a].Unlock()
	if a != b {
		t.locks[b].Unlock()
	}
}

// Find returns the backend that a client was given, 0 if none or if it opened no flow for
// longer than timeout. Times are in ticks; any unit that wraps around will do.
func (t *Table) Find(k *Key, now, timeout uint32) (backend uint32) {
	a, b := t.homes(k)
	t.lock(a, b)
	if r := t.find(k, a, b); r != nil && fresh(r, now, timeout) {
		backend = r.backend
	}
	t.unlock(a, b)
	return backend
}

// Remember notes that a client is given a backend now, in place of what was found for it: 0
// or a backend that it must not have any more. It returns the backend that holds, another
// one when another worker was faster with another packet of that client.
func (t *Table) Remember(k *Key, backend, found, now, timeout uint32) uint32 {
	a, b := t.homes(k)
	t.lock(a, b)
	r := t.find(k, a, b)
	switch {
	case r == nil:
		r = t.room(a, b, now)
	case fresh(r, now, timeout) && r.backend != found:
		backend = r.backend
	}
	*r = record{client: k.Client, session: k.Session, network: uint32(k.Network), backend: backend, last: now}
	r.check = t.sum(r)
	t.unlock(a, b)
	return backend
}

// find looks into both buckets, which are locked.
func (t *Table) find(k *Key, a, b uint64) *record {
	for _, home := range [2]uint64{a, b} {
		for i := range t.buckets[home] {
			if r := &t.buckets[home][i]; r.is(k) && t.used(r) {
				return r
			}
		}
	}
	return nil
}

// room is an empty record in the emptier bucket, else the one used least recently.
func (t *Table) room(a, b uint64, now uint32) *record {
	var empty, oldest *record
	most, oldestAge := 0, uint32(0)
	for _, home := range [2]uint64{a, b} {
		free := 0
		var first *record
		for i := range t.buckets[home] {
			r := &t.buckets[home][i]
			if !t.used(r) {
				free++
				first = r
				continue
			}
			if age := now - r.last; oldest == nil || int32(age) >= 0 && age > oldestAge {
				oldest, oldestAge = r, age
			}
		}
		if free > most {
			most, empty = free, first
		}
	}
	if empty != nil {
		return empty
	}
	return oldest
}

// fresh reports whether the time since the client's last flow is within the timeout. Workers
// read the clock once a batch, so that one may be a little behind another.
func fresh(r *record, now, timeout uint32) bool {
	age := now - r.last
	return int32(age) < 0 || age <= timeout
}
