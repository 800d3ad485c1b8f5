package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzFastpathFile: whatever fastpath.json and the counters hold, the agent says what it
// sees and does not fail; and what it could read it can say again.
func FuzzFastpathFile(f *testing.F) {
	f.Add([]byte(`{"pid":1,"started":"2026-01-01T00:00:00Z","kernel":"6.6","snapshotLayouts":[2],"xdpMode":"native","socketMode":"copy","workers":1,"queues":1,"trunkMTU":1500}`), []byte("LACECNT"))
	f.Add([]byte(`{"snapshotLayouts":[-1]}`), []byte{})
	f.Add([]byte(`null`), []byte{0})
	dir := f.TempDir()
	c := &Config{StateDir: dir}
	f.Fuzz(func(t *testing.T, file, counters []byte) {
		for name, b := range map[string][]byte{"fastpath.json": file, "counters": counters} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		seen := look(c)
		if seen.alive && seen.totals == nil {
			t.Error("alive without counters")
		}
		if _, err := json.Marshal(seen.file); err != nil {
			// A year beyond 9999 can be held and not said.
			if y := seen.file.Started.Year(); y >= 0 && y <= 9999 {
				t.Errorf("what was read cannot be said: %v", err)
			}
		}
	})
}
