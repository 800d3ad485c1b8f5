package agent

import (
	"fmt"
	"slices"

	"lace-cni.io/lace/fastpath/table"
)

// taken is nil when the fast path takes snapshots of the layout that this agent writes, or
// has not said which it takes. Otherwise the snapshot that is there must stay: it is the one
// that the fast path starts from again.
func (c *Config) taken() error {
	file, err := readFile(c.path("fastpath.json"))
	if err != nil || len(file.SnapshotLayouts) == 0 || slices.Contains(file.SnapshotLayouts, table.Layout) {
		return nil
	}
	return fmt.Errorf("lace-fastpath takes snapshots of layout %v and this lace-agent writes layout %d: bring both to the same version; until then the node goes by the last snapshot that lace-fastpath took", file.SnapshotLayouts, table.Layout)
}
