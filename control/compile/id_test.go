package compile

import "testing"

// TestStamp: a generation is never 0, which is what an empty record holds, and never the
// one of before, however the numbers of snapshots fall.
func TestStamp(t *testing.T) {
	for _, tc := range []struct {
		snapshot uint64
		before   uint16
		want     uint16
	}{
		{7, 0, 7}, {7, 6, 7}, {7, 7, 8}, {65536, 0, 1}, {65536, 1, 2}, {65536 + 7, 7, 8}, {65535, 65535, 1}, {2*65536 - 1, 65535, 1},
	} {
		if got := stamp(tc.snapshot, tc.before); got != tc.want {
			t.Errorf("stamp(%d, %d) = %d, want %d", tc.snapshot, tc.before, got, tc.want)
		}
	}
}

// TestIDsRest: an id that was given back is not given out again at once, also when it
// was a gap in the last snapshot.
func TestIDsRest(t *testing.T) {
	var s ids[int]
	x := new(int)
	if !s.claim(2, x) || s.claim(2, x) || s.claim(0, x) || s.claim(idLimit, x) {
		t.Error("claim: want id 2 once, and neither 0 nor one beyond the limit")
	}
	s.rest()
	last := s.take(x)
	for i := range quarantine + 10 {
		s.put(last)
		next := s.take(x)
		if next == last {
			t.Fatalf("step %d: id %d was given out again at once", i, last)
		}
		last = next
	}
	if last > 20 {
		t.Errorf("after more than %d steps id %d was given out, want one of the first again", quarantine, last)
	}
}
