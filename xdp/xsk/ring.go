package xsk

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ring is our side of one single-producer, single-consumer ring that lies in memory shared
// with the kernel. Its two indexes run freely and wrap at 2^32; their difference is the
// number of entries in the ring. We write one of them, the kernel the other; prod and cons
// are our copy of the one and the last seen value of the other.
//
// Memory order. The kernel publishes its index with smp_store_release and reads ours with
// smp_load_acquire. We use sync/atomic, which Go's memory model makes sequentially
// consistent, hence at least as strong:
//   - entries are written before publish stores the index, so that the kernel never sees an
//     index whose entries are not there;
//   - entries are read after ready loaded the index, so that we never read an entry that
//     the kernel has not finished;
//   - entries are read before release stores the index, so that the kernel never overwrites
//     an entry under our eyes;
//   - needsWakeup is loaded after publish stored the index. This is a store followed by a
//     load, which release and acquire alone would not keep in order: the kernel raises the
//     flag and then looks at the ring once more, so that either it sees our entries or we
//     see its flag, never neither.
type ring struct {
	producer *atomic.Uint32
	consumer *atomic.Uint32
	flags    *atomic.Uint32
	size     uint32 // entries, a power of two
	prod     uint32
	cons     uint32
}

// deadRing is what a closed socket has: no entry, no room, no mapping.
func deadRing() ring {
	return ring{producer: new(atomic.Uint32), consumer: new(atomic.Uint32), flags: new(atomic.Uint32)}
}

// room returns how many entries, at most want, can be added by us as the producer.
func (r *ring) room(want int) int {
	n := r.size - (r.prod - r.cons)
	if int64(n) < int64(want) {
		r.cons = r.consumer.Load()
		n = r.size - (r.prod - r.cons)
	}
	return r.bounded(n, want)
}

// publish hands the next n entries to the kernel.
func (r *ring) publish(n int) {
	r.prod += uint32(n)
	r.producer.Store(r.prod)
}

// unconsumed returns how many of our entries the kernel has not taken.
func (r *ring) unconsumed() int {
	r.cons = r.consumer.Load()
	return r.bounded(r.prod-r.cons, int(r.size))
}

// ready returns how many entries, at most want, can be read by us as the consumer.
func (r *ring) ready(want int) int {
	n := r.prod - r.cons
	if int64(n) < int64(want) {
		r.prod = r.producer.Load()
		n = r.prod - r.cons
	}
	return r.bounded(n, want)
}

// release gives the next n entries back to the kernel.
func (r *ring) release(n int) {
	r.cons += uint32(n)
	r.consumer.Store(r.cons)
}

// needsWakeup reports whether the kernel asks to be called when entries were added.
func (r *ring) needsWakeup() bool { return r.flags.Load()&unix.XDP_RING_NEED_WAKEUP != 0 }

// bounded limits n to want. More entries than the ring holds can only come from a damaged
// index in the shared memory: then there are none, rather than a walk through garbage.
func (r *ring) bounded(n uint32, want int) int {
	if n > r.size {
		return 0
	}
	return min(int(n), want)
}

// sound reports whether the indexes are at most a ring's size apart.
func (r *ring) sound() bool { return r.producer.Load()-r.consumer.Load() <= r.size }

// addressRing carries addresses of chunks: the fill and the completion ring.
type addressRing struct {
	ring
	entries []uint64
}

// entry returns the i-th entry behind the index from.
func (r *addressRing) entry(from uint32, i int) *uint64 {
	return &r.entries[(from+uint32(i))&(r.size-1)]
}

// descriptorRing carries descriptors of frames: the RX and the TX ring.
type descriptorRing struct {
	ring
	entries []unix.XDPDesc
}

// entry returns the i-th entry behind the index from.
func (r *descriptorRing) entry(from uint32, i int) *unix.XDPDesc {
	return &r.entries[(from+uint32(i))&(r.size-1)]
}
