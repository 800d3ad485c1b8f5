package dataplane

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/xdp"
)

// Defaults of Config, which are those of lace-fastpath's flags.
const (
	DefaultStateDir  = "/run/lace"
	DefaultBPFFS     = "/sys/fs/bpf"
	DefaultWorkers   = 1
	DefaultFlowSlots = 1 << 19 // 64 MiB: 131,072 flows at the recommended load of one half
	DefaultTrunkMTU  = 3498    // the most that a frame of one page carries
	DefaultPuntRate  = police.DefaultRate
	DefaultPuntBurst = police.DefaultBurst
)

const (
	minTrunkMTU = 1280 // of IPv6, RFC 8200
	maxSlots    = 1 << 28
	maxPunts    = 1 << 20 // a second: nobody sends more, so there is nothing to limit
)

// Config of the fast path of one node. The zero value of a field means its default.
type Config struct {
	StateDir  string // files shared with the agent; made with mode 0700
	BPFFS     string // a mounted BPF file system; everything goes under <BPFFS>/lace
	Workers   int    // queues of the trunk, one goroutine each
	FlowSlots int    // slots of the flow table, two per flow, 128 bytes each; rounded up
	TrunkMTU  int    // bytes of IP packet that the trunk carries: at least the largest MTU of pods and uplinks
	PuntRate  int    // packets per second that every port may always ask Go about, of each kind
	PuntBurst int    // of them, so many at once
	Log       *slog.Logger
}

// Files in a state directory.
const (
	snapshotFile = "snapshot"
	counterFile  = "counters"
	statusFile   = "fastpath.json"
	lockFile     = "fastpath.lock"
)

func (c *Config) path(file string) string { return filepath.Join(c.StateDir, file) }

// complete sets defaults and checks.
func (c *Config) complete() error {
	c.StateDir = cmp.Or(c.StateDir, DefaultStateDir)
	c.BPFFS = cmp.Or(c.BPFFS, DefaultBPFFS)
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	c.FlowSlots = cmp.Or(c.FlowSlots, DefaultFlowSlots)
	c.TrunkMTU = cmp.Or(c.TrunkMTU, DefaultTrunkMTU)
	c.PuntRate = cmp.Or(c.PuntRate, DefaultPuntRate)
	c.PuntBurst = cmp.Or(c.PuntBurst, DefaultPuntBurst)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c.Check()
}

// Check names the first field that is out of range; 0 stands for the default and is not.
func (c *Config) Check() error {
	for _, r := range []struct {
		name             string
		value, from, end int
	}{
		{"workers", c.Workers, 1, min(counter.MaxWorkers, xdp.MaxQueues)},
		{"flow slots", c.FlowSlots, 1 + conntrack.BucketSlots, maxSlots},
		{"punt rate", c.PuntRate, 1, maxPunts},
		{"punt burst", c.PuntBurst, 1, maxPunts},
		{"trunk MTU", c.TrunkMTU, minTrunkMTU, xdp.MaxTrunkMTU},
	} {
		if r.value != 0 && (r.value < r.from || r.value > r.end) {
			return fmt.Errorf("%s: %d is outside %d to %d", r.name, r.value, r.from, r.end)
		}
	}
	return nil
}
