package table

import (
	"bytes"
	"fmt"

	"lace-cni.io/lace/fastpath/packet"
)

// part is a run of a list; a run that does not fit the list, which only another
// snapshot's can be, is nil.
func part[T any](list []T, r Run) []T {
	end := uint64(r.First) + uint64(r.Count)
	if end > uint64(len(list)) {
		return nil
	}
	return list[r.First:end:end]
}

// Sources are the ranges of clients that may call a restricted frontend.
func (s *Snapshot) Sources(f *Frontend) []Range { return part(s.ranges, f.Sources) }

// Permits reports whether a client may call one of this snapshot's frontends: a binary
// search through its ranges.
func (s *Snapshot) Permits(f *Frontend, client *packet.Addr) bool {
	if f.Flags&Restricted == 0 {
		return true
	}
	ranges := s.Sources(f)
	first, end := 0, len(ranges) // the first range that does not end before the client lies in between
	for first < end {
		if mid := (first + end) / 2; bytes.Compare(ranges[mid].Last[:], client[:]) < 0 {
			first = mid + 1
		} else {
			end = mid
		}
	}
	return first < len(ranges) && bytes.Compare(ranges[first].First[:], client[:]) <= 0
}

// checkSources proves that the ranges of every restricted frontend are of its family,
// sorted and apart. Frontends may share them, so the list is walked once.
func (s *Snapshot) checkSources() error {
	sorted, err := s.sortedUntil()
	if err != nil {
		return err
	}
	for i := range s.frontends {
		f := &s.frontends[i]
		end := uint64(f.Sources.First) + uint64(f.Sources.Count)
		switch {
		case end > uint64(len(s.ranges)):
			return fmt.Errorf("%v: %d source ranges from position %d on run past the list of %d", f, f.Sources.Count, f.Sources.First, len(s.ranges))
		case f.Sources.Count == 0:
		case uint64(sorted[f.Sources.First]) < end:
			return fmt.Errorf("%v: source range at position %d does not come behind the one before it", f, sorted[f.Sources.First])
		case s.ranges[f.Sources.First].First.Is4() != f.Addr.Is4():
			return fmt.Errorf("%v: its source ranges are of another family", f)
		}
	}
	return nil
}

// sortedUntil says for each range up to where, exclusively, the list goes on in order and
// in one family from there.
func (s *Snapshot) sortedUntil() ([]uint32, error) {
	out := make([]uint32, len(s.ranges))
	for i := len(out) - 1; i >= 0; i-- {
		r := &s.ranges[i]
		if bytes.Compare(r.First[:], r.Last[:]) > 0 || r.First.Is4() != r.Last.Is4() {
			return nil, fmt.Errorf("source range at position %d, %s to %s, is none", i, r.First, r.Last)
		}
		out[i] = uint32(i) + 1
		if i+1 < len(out) {
			if next := &s.ranges[i+1]; bytes.Compare(r.Last[:], next.First[:]) < 0 && r.First.Is4() == next.First.Is4() {
				out[i] = out[i+1]
			}
		}
	}
	return out, nil
}
