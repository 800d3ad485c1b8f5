package compile

// quarantine is how many ids rest before the one that was given back first is given out
// again, so that a flow that still names it meets nothing rather than something else.
const quarantine = 1024

// idLimit bounds the ids that are taken over from a file: tables are as long as their
// largest id.
const idLimit = 1 << 22

// ids gives out small numbers from 1 on and knows who has which.
type ids[T any] struct {
	holders []*T     // by id; 0 is never given out
	resting []uint32 // given back, the longest ago first
}

// take gives the holder an id.
func (s *ids[T]) take(holder *T) uint32 {
	if len(s.holders) == 0 {
		s.holders = append(s.holders, nil)
	}
	if len(s.resting) > quarantine {
		id := s.resting[0]
		s.resting = s.resting[1:]
		s.holders[id] = holder
		return id
	}
	s.holders = append(s.holders, holder)
	return uint32(len(s.holders) - 1)
}

// put gives an id back.
func (s *ids[T]) put(id uint32) {
	s.holders[id] = nil
	s.resting = append(s.resting, id)
}

// claim gives the holder the id that it had in the last snapshot; false: it is taken, or
// too large to be one of ours. rest must follow when all are claimed.
func (s *ids[T]) claim(id uint32, holder *T) bool {
	if id == 0 || id >= idLimit {
		return false
	}
	for len(s.holders) <= int(id) {
		s.holders = append(s.holders, nil)
	}
	if s.holders[id] != nil {
		return false
	}
	s.holders[id] = holder
	return true
}

// rest lets the gaps between claimed ids rest.
func (s *ids[T]) rest() {
	for id := 1; id < len(s.holders); id++ {
		if s.holders[id] == nil {
			s.resting = append(s.resting, uint32(id))
		}
	}
}

// stamp is the generation for something that changed with the snapshot of that number:
// never 0, and never the one of before.
func stamp(snapshot uint64, before uint16) uint16 {
	g := uint16(snapshot)
	for g == 0 || g == before {
		g++
	}
	return g
}
