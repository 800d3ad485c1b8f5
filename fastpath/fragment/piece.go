package fragment

// MaxPieces bounds the fragments of one datagram: as many as the longest one has on a
// path of 576 bytes, below which no path should be (RFC 1122, section 3.3.3).
const MaxPieces = 128

// Piece is the part of a datagram that one fragment carries: bytes From up to To, behind
// the IP header and whatever extension headers precede the fragment header.
type Piece struct {
	From, To uint16 // From is a multiple of 8
	Last     bool   // no more fragments follow
	// Mark tells first fragments apart that cover the same bytes: something of their
	// transport headers. 0 in later ones.
	Mark uint64
}

// span is a piece that has come.
type span struct{ from, to uint16 }

// pieces are what has come of a datagram, in order and without overlap.
type pieces struct {
	mark  uint64
	have  uint32 // bytes
	total uint32 // bytes of the whole; 0 until the last fragment came
	n     uint16
	spans [MaxPieces]span
}

type fit uint8

const (
	fits fit = iota
	duplicate
	overlap // or another contradiction
	tooMany
)

// add notes a piece, unless it does not fit.
func (s *pieces) add(p Piece) fit {
	at := s.place(p.From)
	if at < int(s.n) && s.spans[at].from == p.From {
		return s.again(&s.spans[at], p)
	}
	switch {
	case at > 0 && s.spans[at-1].to > p.From,
		at < int(s.n) && (s.spans[at].from < p.To || p.Last),
		s.total != 0 && (p.Last || uint32(p.To) > s.total):
		return overlap
	case s.n == MaxPieces:
		return tooMany
	}
	copy(s.spans[at+1:s.n+1], s.spans[at:s.n])
	s.spans[at] = span{p.From, p.To}
	s.n++
	s.have += uint32(p.To - p.From)
	if p.Last {
		s.total = uint32(p.To)
	}
	if p.From == 0 {
		s.mark = p.Mark
	}
	return fits
}

// place is the index of the first span that does not begin before from. Fragments mostly
// come in order, so the search begins at the end.
func (s *pieces) place(from uint16) int {
	at := int(s.n)
	for at > 0 && s.spans[at-1].from >= from {
		at--
	}
	return at
}

// again judges a piece that begins where one has come that is equal to it, or is not.
func (s *pieces) again(old *span, p Piece) fit {
	last := s.total == uint32(old.to)
	if old.to != p.To || last != p.Last || p.From == 0 && s.mark != p.Mark {
		return overlap
	}
	return duplicate
}

func (s *pieces) complete() bool { return s.total != 0 && s.have == s.total }

func (s *pieces) reset() { s.n, s.have, s.total, s.mark = 0, 0, 0, 0 }
