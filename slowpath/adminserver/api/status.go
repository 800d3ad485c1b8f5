package api

import "time"

// Status is the state of the node's Lace at one moment.
type Status struct {
	Version    string            `json:"version"`
	Node       string            `json:"node"`
	Simulated  bool              `json:"simulated,omitempty"` // packets in memory: no kernel is involved
	Mode       string            `json:"mode"`                // always "lace": the answer of /proxyMode
	Ready      bool              `json:"ready"`
	Waiting    string            `json:"waiting,omitempty"` // what Ready waits for, for people
	Started    time.Time         `json:"started"`
	Source     string            `json:"source"`
	Synced     bool              `json:"synced"` // the source has delivered everything it had
	Generation Generation        `json:"generation"`
	Fastpath   Fastpath          `json:"fastpath"`
	Objects    Objects           `json:"objects"`
	Repairs    map[string]uint64 `json:"repairs,omitempty"` // what was taken away or changed and put right, how often since each process began
}

// Generation numbers snapshots.
type Generation struct {
	Published   uint64    `json:"published"`            // last one written by the agent
	InUse       uint64    `json:"inUse"`                // the one that all workers go by; 0 unknown
	PublishedAt time.Time `json:"publishedAt,omitzero"` // when it was written
	Programming float64   `json:"programmingSeconds"`   // change to published, of the last one
	QueuedSince time.Time `json:"queuedSince,omitzero"` // oldest change not published yet
}

// Fastpath is the other process.
type Fastpath struct {
	Alive        bool      `json:"alive"`
	Message      string    `json:"message,omitempty"` // why it is not, or what is odd about it
	PID          int       `json:"pid,omitempty"`
	Started      time.Time `json:"started,omitzero"`
	StartSeconds float64   `json:"startSeconds,omitempty"` // from the start of the process until it was ready
	XDPMode      string    `json:"xdpMode,omitempty"`      // native or generic
	SocketMode   string    `json:"socketMode,omitempty"`   // copy or zero-copy
	Workers      int       `json:"workers,omitempty"`
	Queues       int       `json:"queues,omitempty"`
	TrunkMTU     int       `json:"trunkMTU,omitempty"`
	Sockets      string    `json:"sockets,omitempty"` // programs by which the node's own sockets reach its own addresses: SocketsAttached, or why they are not
	Kernel       string    `json:"kernel,omitempty"`
	Layouts      []uint32  `json:"layouts,omitempty"` // snapshot layouts that it takes
	Flows        uint64    `json:"flows"`             // registered flows, closed ones among them
	Open         uint64    `json:"open"`              // registered flows that are not closed, at most a second ago
	HalfOpen     uint64    `json:"halfOpen"`
	FlowsMax     uint64    `json:"flowsMax"`
	Packets      uint64    `json:"packets"` // that Go has decided since it started
	Bytes        uint64    `json:"bytes"`
}

// SocketsAttached is what Fastpath says of the programs of sockets that are in place.
const SocketsAttached = "attached"

// Objects counts what is programmed.
type Objects struct {
	Services  int `json:"services"`
	Frontends int `json:"frontends"`
	Backends  int `json:"backends"`
	Ports     int `json:"ports"`
	Problems  int `json:"problems"`
}
