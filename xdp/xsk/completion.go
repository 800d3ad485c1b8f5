package xsk

// Complete returns the chunks of all frames that the kernel has sent (or dropped while
// sending) to the pool, and how many there were. It never blocks and makes no system call.
func (s *Socket) Complete() int {
	n := s.completion.ready(int(s.completion.size))
	if n == 0 {
		return 0
	}
	from, got := at(tx, s.slot), 0
	for k := range n {
		if s.umem.reclaim(*s.completion.entry(s.completion.cons, k), from) {
			got++
		} else {
			s.stats.Malformed++
		}
	}
	s.completion.release(n)
	s.sending -= got
	s.stats.Completed += uint64(got)
	return got
}
