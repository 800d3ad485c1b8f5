package fragment

import (
	"fmt"
	"time"
)

// MaxPorts is one more than the largest id of a port.
const MaxPorts = 4096

// Lifetime is how long a datagram is remembered that is not complete: far longer than
// networks reorder, and shorter than the time in which a busy sender uses an IPv4
// identification again.
const Lifetime = 5 * time.Second

// Bounds of a Table. They are split evenly among the shards, over which datagrams are
// spread at random.
type Bounds struct {
	Shards           int // locks
	Datagrams        int // unfinished, in all
	DatagramsPerPort int
	Held             int // bytes of fragments whose first one has not come, in all
	HeldPerPort      int
}

// Default is for a node: at the bound, 21 MiB for datagrams and 16 MiB for what is held.
var Default = Bounds{
	Shards: 8, Datagrams: 1 << 15, DatagramsPerPort: 1 << 12,
	Held: 16 << 20, HeldPerPort: 2 << 20,
}

// Small is for a pipeline of its own that sees a packet now and then.
var Small = Bounds{Shards: 1, Datagrams: 64, DatagramsPerPort: 32, Held: 256 << 10, HeldPerPort: 128 << 10}

// Check names the first bound that makes no sense.
func (b *Bounds) Check() error {
	for _, c := range []struct {
		name         string
		value, least int
	}{
		{"shards", b.Shards, 1},
		{"datagrams", b.Datagrams, b.Shards},
		{"datagrams per port", b.DatagramsPerPort, b.Shards},
		{"bytes held", b.Held, b.Shards * chunkSize * chunksOf(maxFrame)},
		{"bytes held per port", b.HeldPerPort, b.Shards * chunkSize * chunksOf(maxFrame)},
	} {
		if c.value < c.least {
			return fmt.Errorf("fragments: %d %s, want at least %d", c.value, c.name, c.least)
		}
	}
	return nil
}

// maxFrame is the longest frame that can be held.
const maxFrame = 4096
