package metrics

import (
	"time"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/xdp"
)

// Reading is everything that a scrape shows, read at one moment.
type Reading struct {
	Fastpath  Fastpath
	Go        *counter.Totals // the counter file; nil: there is none that can be read
	Kernel    *xdp.Counters   // of the BPF programs; nil: there are none that can be read
	Published Published
	Changes   Changes
	Repairs   map[string]uint64 // of both processes, by what was repaired
	Devices   map[uint16]string // of the ports, by id
	Holes     []blackhole.Hole  // that are spoken of now

	WithoutLocal [2]WithoutLocal // by family: IPv4, IPv6
}

// Fastpath is the other process.
type Fastpath struct {
	Alive      bool
	XDPMode    string // native or generic
	SocketMode string // copy or zero-copy
}

// Published is what the agent published last, and from what.
type Published struct {
	Generation uint64
	At         time.Time // zero: nothing yet
	Bytes      int
	Queued     time.Time      // since when a change waits; zero: none does
	Objects    map[string]int // declared objects by kind
	Problems   map[string]int // by kind of object
	Programmed map[string]int // what the tables hold: services, frontends, backends, ports
}
