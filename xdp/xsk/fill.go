package xsk

// Refill gives up to limit free chunks to the kernel to receive into and returns how many
// went. It ends earlier when the fill ring is full or the pool empty. Where sockets share
// the pool, limit keeps one of them from taking it all. Cost: one atomic store a batch; a
// system call only where the driver sleeps until it is told of new chunks.
func (s *Socket) Refill(limit int) int {
	u := s.umem
	n := s.fill.room(min(limit, len(u.pool)))
	if n <= 0 {
		return 0
	}
	to, top := at(fill, s.slot), len(u.pool)
	for k := range n {
		i := u.pool[top-1-k]
		u.where[i] = to
		*s.fill.entry(s.fill.prod, k) = uint64(i) << u.shift
	}
	u.pool = u.pool[:top-n]
	s.fill.publish(n)
	s.filled += n
	if s.fill.needsWakeup() {
		s.wakeReceiver()
	}
	return n
}

// wakeReceiver tells the driver that the fill ring has chunks. What it returns says nothing
// about the chunks: they are in the ring. Kick and Wait report a device that fails.
func (s *Socket) wakeReceiver() {
	s.stats.ReceiveKicks++
	receiveNothing(s.fd)
}
