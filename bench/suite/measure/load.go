// Package measure takes one figure of one rig: it sets the two ends up, waits until what is
// to be measured is in its steady state, measures, and leaves the rig as it was.
//
// It owns the list of loads: their names, fields, and on which paths they make sense. It
// must never compare.
package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lace-cni.io/lace/bench/suite/rig"
)

// Load is one thing to measure.
type Load struct {
	Name  string
	Field string // the one that the table shows
	Unit  string // of that field
	Less  bool   // less of it is better
	What  string // for people
	Only  []rig.Kind
	On    rig.Path            // the path that it means something on; empty: any
	Not   map[rig.Kind]string // kinds that cannot carry it, and why
	run   func(*bench) (Values, error)
}

// Values by field.
type Values map[string]float64

// overXDP says why a kind cannot carry TCP.
var overXDP = map[rig.Kind]string{rig.Ceiling: "XDP redirects packets of pods whose checksums nobody completes"}

// onlyFrames says the same of everything that ends in a server's own socket.
var onlyFrames = overXDP

// Loads are all there are.
var Loads = append([]Load{
	{Name: "udp-frames", Field: "mpps", Unit: "Mpps", What: "64-byte UDP of 4,096 flows that had answers, frames made in the kernel", run: establishedFrames},
	{Name: "udp-sockets", Field: "mpps", Unit: "Mpps", What: "the same from real sockets of the client, 256 flows", run: establishedSockets, Not: onlyFrames},
	{Name: "udp-oneway", Field: "mpps", Unit: "Mpps", What: "64-byte UDP of 4,096 flows that never get an answer, frames", run: onewayFrames},
	{Name: "udp-new", Field: "mpps", Unit: "Mpps", What: "64-byte UDP, every frame the first of a flow", run: newFrames},
	{Name: "tcp-1", Field: "gbps", Unit: "Gbit/s", What: "one TCP stream", run: streams(1), Not: overXDP},
	{Name: "tcp-8", Field: "gbps", Unit: "Gbit/s", What: "eight TCP streams", run: streams(8), Not: overXDP},
	{Name: "connect", Field: "rate", Unit: "/s", What: "TCP connect, echo of 64 bytes, close; 4 clients", run: connections, Not: overXDP},
	{Name: "rtt", Field: "p50", Unit: "µs", Less: true, What: "round trip of a datagram on one flow", run: roundTrips, Not: onlyFrames},
	{Name: "rtt-first", Field: "p50", Unit: "µs", Less: true, What: "round trip of the first datagram of a flow", run: firstPackets, Not: onlyFrames},
	{Name: "direct-frames", Field: "mpps", Unit: "Mpps", What: "64-byte UDP to the pod's own address, frames: unclaimed", run: directFrames},
	{Name: "direct-tcp", Field: "gbps", Unit: "Gbit/s", What: "one TCP stream to the pod's own address: unclaimed", run: directStream, Not: overXDP},
	{Name: "flow-memory", Field: "bytes", Unit: "B", Less: true, What: "memory per flow with the table half full", run: flowMemory, Only: []rig.Kind{rig.Lace}},
	{Name: "floor", Field: "mpps", Unit: "Mpps", What: "frames dropped where they enter the node: what all frames cost anyway", run: floorFrames, Only: []rig.Kind{rig.Direct}},
}, floodLoads()...)

// Find a load by name.
func Find(name string) (*Load, error) {
	i := slices.IndexFunc(Loads, func(l Load) bool { return l.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no load %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return &Loads[i], nil
}

// Names of all loads.
func Names() (out []string) {
	for _, l := range Loads {
		out = append(out, l.Name)
	}
	return out
}

// Times of a measurement.
type Times struct {
	Warm     time.Duration // before it, of streams
	For      time.Duration
	NewFlows int // how many new flows to make, in place of For
}

// Refuses says why a mode cannot carry the load on a path; empty: it can. want is whether a
// run that asks for everything is to mention it.
func (l *Load) Refuses(m rig.Mode, p rig.Path) (why string, want bool) {
	switch {
	case l.Only != nil && !slices.Contains(l.Only, m.Kind):
		return "it means nothing there", false
	case l.On != "" && l.On != p:
		return "it has its own path", false
	case l.Not[m.Kind] != "":
		return l.Not[m.Kind], true
	case p != rig.Node && (m.Kind == rig.Ceiling || m.Kind == rig.Rings):
		return "it runs on one node only", true
	}
	return "", false
}

// bench is one measurement in work.
type bench struct {
	ctx context.Context // of this one measurement
	*rig.Rig
	path  rig.Path
	cpu   int
	times Times
}

// Run takes the figures of a load. cpu is where closed loops run. The end of ctx ends it with
// an error within a second.
func (l *Load) Run(ctx context.Context, r *rig.Rig, p rig.Path, cpu int, t Times) (Values, error) {
	before := r.Drops()
	v, err := l.run(&bench{ctx, r, p, cpu, t})
	if err == nil {
		return v, nil
	}
	err = fmt.Errorf("%s of %s with %d services on path %s: %w", l.Name, r.Mode.Name, r.Services, p, err)
	if drops := r.Drops().Since(before); drops != "" {
		err = fmt.Errorf("%w; packets dropped meanwhile: %s", err, drops)
	}
	return nil, err
}
