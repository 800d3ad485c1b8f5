package counter

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen: whatever the bytes, a reader refuses the file or can read all of it.
func FuzzOpen(f *testing.F) {
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
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "counters")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			return
		}
		defer r.Close()
		if got := r.Totals(); len(got.Beats) != got.Workers {
			t.Errorf("%d heartbeats of %d workers", len(got.Beats), got.Workers)
		}
	})
}
