package dataplane

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Status is what fastpath.json says: what hardly changes while the process runs. What
// does is in the counter file.
type Status struct {
	PID             int       `json:"pid"`
	Started         time.Time `json:"started"`
	StartSeconds    float64   `json:"startSeconds"`    // from the start of the process until it was ready
	Kernel          string    `json:"kernel"`          // release, as of uname -r
	SnapshotLayouts []int     `json:"snapshotLayouts"` // layouts that the agent may write
	XDPMode         string    `json:"xdpMode"`         // native or generic, on lace1
	SocketMode      string    `json:"socketMode"`      // copy or zero-copy
	Workers         int       `json:"workers"`
	Queues          int       `json:"queues"`
	TrunkMTU        int       `json:"trunkMTU"`  // largest IP packet, bytes
	Sockets         string    `json:"sockets"`   // programs of the node's own sockets: Attached, or why they are not
	FlowSlots       int       `json:"flowSlots"` // of the flow table, two per flow
	FlowsKept       bool      `json:"flowsKept"` // an earlier process's flow table was taken over
	FlowsRestored   int       `json:"flowsRestored"`
	FlowsRepaired   int       `json:"flowsRepaired"` // torn or half-written entries that were removed
	FlowsLost       int       `json:"flowsLost"`     // went with a table that was damaged, or of another layout or size
	// A flow table was gone or replaced, and nobody can count what it held.
	FlowsLostUnknown bool `json:"flowsLostUnknown,omitempty"`
}

// write replaces fastpath.json, so that a reader sees the old or the new one whole.
func (s *Status) write(stateDir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("fastpath.json: %w", err)
	}
	tmp, err := os.CreateTemp(stateDir, ".fastpath-*.json")
	if err != nil {
		return fmt.Errorf("fastpath.json: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(b, '\n'))
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(stateDir, statusFile))
	}
	if err != nil {
		return fmt.Errorf("fastpath.json: %w", err)
	}
	return nil
}
