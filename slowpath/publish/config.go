package publish

import (
	"log/slog"
	"net/netip"
	"time"

	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/table"
)

// Config of a Publisher.
type Config struct {
	Node     string            // name of this node
	Path     string            // snapshot file, usually <state-dir>/snapshot
	Settings table.Settings    // zero: table.DefaultSettings()
	At       resolve.NodePorts // at which of its addresses the node answers node ports; zero: the primary ones
	Settle   time.Duration     // quiet time awaited before a publication; 0: 2 ms
	MaxDelay time.Duration     // longest wait while changes keep coming; 0: 20 ms
	Check    time.Duration     // how often the file is looked at, whether it is the one that was written; 0: 500 ms

	// Partial says that the source may leave out Services that are not proxied; see
	// resolve.Objects.
	Partial bool

	// Ranges are the service ranges; nil: those that the source's ServiceCIDRs declare.
	// Ranged is told which they are before the first publication and whenever they change,
	// by Run's goroutine; it may be nil.
	Ranges []netip.Prefix
	Ranged func([]netip.Prefix)

	// Reserved are the addresses and ports of the API servers, which no Service gets.
	Reserved []netip.AddrPort

	// AgentPorts are the TCP ports at which the agent answers on the node's addresses; no
	// Service gets one as a node port.
	AgentPorts []uint16

	// Latency is told, for each change that a publication brought after the first one,
	// how long ago the world changed. Took is told how long each publication took from
	// the first change in it. Both are called by Run's goroutine and may be nil.
	Latency func(time.Duration)
	Took    func(time.Duration)

	// Written is told of each snapshot that was written, by Run's goroutine. It may be nil.
	Written func(Publication)

	// Coming is told of each State before the snapshot of its generation is written, and of
	// one that needs no new snapshot, so that who speaks about the tables in use knows about
	// them first. Problems are not in it. It is called by Run's goroutine and may be nil.
	Coming func(*State)

	// Taken is asked before a snapshot is written whether it would be taken. Its error keeps
	// the one that is there, and is a Problem; it is asked again every second. It may be nil.
	Taken func() error

	// Repaired is told each time that the file was not the one that was written and is
	// written again, by Run's goroutine. It may be nil.
	Repaired func()

	Log *slog.Logger
}

func (c *Config) complete() {
	if c.Settings == (table.Settings{}) {
		c.Settings = table.DefaultSettings()
	}
	if c.Settle == 0 {
		c.Settle = 2 * time.Millisecond
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = 20 * time.Millisecond
	}
	if c.Check == 0 {
		c.Check = 500 * time.Millisecond
	}
	if c.Ranged == nil {
		c.Ranged = func([]netip.Prefix) {}
	}
	if c.Latency == nil {
		c.Latency = func(time.Duration) {}
	}
	if c.Took == nil {
		c.Took = func(time.Duration) {}
	}
	if c.Written == nil {
		c.Written = func(Publication) {}
	}
	if c.Coming == nil {
		c.Coming = func(*State) {}
	}
	if c.Taken == nil {
		c.Taken = func() error { return nil }
	}
	if c.Repaired == nil {
		c.Repaired = func() {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}
