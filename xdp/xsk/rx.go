package xsk

// Receive takes received frames out of the RX ring into batch and returns how many there
// were. The owner holds them afterwards. It never blocks and makes no system call. A
// descriptor that names memory which this socket was not given is left out and counted in
// Stats.Malformed; it can only come from a broken kernel or driver.
func (s *Socket) Receive(batch []Frame) int {
	n := s.rx.ready(len(batch))
	if n == 0 {
		return 0
	}
	from, got := at(fill, s.slot), 0
	for k := range n {
		f, ok := s.umem.accept(s.rx.entry(s.rx.cons, k), from)
		if !ok {
			s.stats.Malformed++
			continue
		}
		batch[got] = f
		got++
	}
	s.rx.release(n)
	s.filled -= got
	s.umem.held += got
	s.stats.Received += uint64(got)
	return got
}

// Backlog is how many frames wait in the RX ring. It makes no system call.
func (s *Socket) Backlog() int { return s.rx.ready(int(s.rx.size)) }
