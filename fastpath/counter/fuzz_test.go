package counter

import "testing"

// FuzzReader: whatever a file holds, it is refused or all of it can be read.
func FuzzReader(f *testing.F) {
	words := make([]uint64, newShape(1).words())
	newShape(1).write(words)
	good := make([]byte, 0, len(words)*wordBytes)
	for _, w := range words {
		for i := range wordBytes {
			good = append(good, byte(w>>(8*i)))
		}
	}
	f.Add(good)
	f.Add(good[:headerSize*wordBytes])
	f.Add([]byte("LACECNT1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// A copy has an address that suits words, which a mapping always has.
		words := make([]uint64, len(b)/wordBytes)
		for i := range words {
			for j := range wordBytes {
				words[i] |= uint64(b[i*wordBytes+j]) << (8 * j)
			}
		}
		s, err := readShape(words)
		if err != nil {
			return
		}
		r := Reader{words: words, shape: s}
		if got := r.Totals(); len(got.Beats) != got.Workers {
			t.Errorf("%d heartbeats of %d workers", len(got.Beats), got.Workers)
		}
	})
}
