// Package record is what a run of the suite leaves behind: every figure of every round, with
// the machine it was taken on, as JSON that a later run or a document can be made from.
//
// It owns the names of what is measured and the form of the file. It judges nothing: ratios
// are package stats' business, goals package goal's.
package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Layout of the file. It changes when a field changes its meaning.
const Layout = 1

// Kinds of run.
const (
	Smoke = "smoke" // does it run at all: figures mean nothing
	Bench = "bench" // what the goals need
	Full  = "full"  // everything with everything
)

// Run is one run of the suite.
type Run struct {
	Layout    int                `json:"layout"`
	Kind      string             `json:"kind"` // smoke, bench or full
	Started   time.Time          `json:"started"`
	Seconds   float64            `json:"seconds"`
	Rounds    int                `json:"rounds"` // completed ones
	Machine   Machine            `json:"machine"`
	Generator map[string]float64 `json:"generator"` // its own ceiling, by figure
	Modes     []Mode             `json:"modes"`
	// Asked is by mode what the run was to measure, whether it could or not. Nil: everything.
	Asked   map[string][]Measurement `json:"asked,omitempty"`
	Skipped []Skip                   `json:"skipped,omitempty"`
	Notes   []string                 `json:"notes,omitempty"`
	Samples []Sample                 `json:"samples"`
}

// Machine is what figures depend on.
type Machine struct {
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	MemoryMiB int     `json:"memoryMiB"`
	Kernel    string  `json:"kernel"`
	Go        string  `json:"go"`
	Revision  string  `json:"revision"`
	LoadStart float64 `json:"loadStart"` // mean number of runnable tasks of the minute before
	LoadEnd   float64 `json:"loadEnd"`
}

// Mode is what carried the packets, with what it took to set up.
type Mode struct {
	Name         string  `json:"name"`
	What         string  `json:"what"`
	Services     int     `json:"services"`
	SetupSeconds float64 `json:"setupSeconds"` // of the rules or tables alone
}

// Skip is something that was asked for and not measured.
type Skip struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Measurement names what is measured, apart from the mode.
type Measurement struct {
	Load     string `json:"load"`
	Path     string `json:"path"`
	Services int    `json:"services"`
}

func (m Measurement) String() string { return fmt.Sprintf("%s/%s/%d", m.Load, m.Path, m.Services) }

// ParseMeasurement reads LOAD/PATH/SERVICES.
func ParseMeasurement(s string) (Measurement, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return Measurement{}, fmt.Errorf("measurement %q: want LOAD/PATH/SERVICES", s)
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || n < 1 {
		return Measurement{}, fmt.Errorf("measurement %q: %q is no number of services", s, parts[2])
	}
	return Measurement{parts[0], parts[1], n}, nil
}

// Sample is one measurement of one mode in one round.
type Sample struct {
	Mode  string `json:"mode"`
	Round int    `json:"round"`
	Measurement
	Values map[string]float64 `json:"values,omitempty"` // by field
	Error  string             `json:"error,omitempty"`
}

// Series is a field over rounds; NaN where it was not measured.
func (r *Run) Series(mode string, m Measurement, field string) []float64 {
	out := make([]float64, r.Rounds)
	for i := range out {
		out[i] = math.NaN()
	}
	for _, s := range r.Samples {
		if v, ok := s.Values[field]; ok && s.Mode == mode && s.Measurement == m && s.Round < len(out) {
			out[s.Round] = v
		}
	}
	return out
}

// Write saves the run: whoever reads path finds what was there before, or all of it.
func (r *Run) Write(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record of the run: %w", err)
	}
	b = bytes.ReplaceAll(b, []byte(`{"mode":`), []byte("\n{\"mode\":")) // a line for each sample
	return writeFile(path, append(b, '\n'))
}

// Read loads a run from a regular file of no more than MaxFile bytes.
func Read(path string) (*Run, error) {
	b, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Run)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s is no record of a run: %w", path, err)
	}
	if r.Layout != Layout {
		return nil, fmt.Errorf("%s has layout %d, this program reads %d: run the suite again", path, r.Layout, Layout)
	}
	return r, nil
}
