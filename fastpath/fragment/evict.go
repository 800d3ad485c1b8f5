package fragment

import "lace-cni.io/lace/fastpath/reason"

// evict forgets the oldest datagram of a port.
func (s *shard) evict(owner uint16, lost *Losses) {
	a := &s.accounts[owner]
	i, j := a.lists[lineWaiting].head, a.lists[lineSettled].head
	if i == 0 || j != 0 && s.list[j].born < s.list[i].born {
		i = j
	}
	s.forget(i, reason.FragmentTableFull, lost)
}

func (s *shard) forget(i uint32, why reason.Reason, lost *Losses) {
	d := &s.list[i]
	s.letGo(d, why, lost)
	s.remove(i, s.hashOf(&d.key))
}

// most is the port that uses most. It is only asked when the table itself is full, which
// takes several ports at their own bounds.
func (s *shard) most(of func(*account) uint32) (port uint16) {
	best := uint32(0)
	for i := range s.accounts {
		if n := of(&s.accounts[i]); n > best {
			port, best = uint16(i), n
		}
	}
	return port
}

// makeRoom frees chunks for a fragment of a datagram that waits, at the cost of the oldest
// ones of its own port, or of the port that holds most. false: the datagram in hand would
// have to go itself.
func (s *shard) makeRoom(hand uint32, chunks int, lost *Losses) bool {
	for {
		port := s.list[hand].owner
		switch a := &s.accounts[port]; {
		case a.chunks+uint32(chunks) > s.chunksOfPort:
		case s.store.room() < chunks:
			port = s.most(func(a *account) uint32 { return a.chunks })
		default:
			return true
		}
		i := s.accounts[port].lists[lineWaiting].head
		if i == 0 || i == hand {
			return false
		}
		s.forget(i, reason.FragmentTableFull, lost)
	}
}
