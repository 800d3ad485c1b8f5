// Package plan says what a run of the suite measures, in which order.
//
// It owns the three kinds of run and the order that makes figures comparable: everything
// that is set in relation is measured one after the other in each round, and the order
// turns from round to round so that nobody is always first. It never measures.
package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lace-cni.io/lace/bench/suite/measure"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/rig"
)

// Kinds of run.
const (
	Smoke = record.Smoke // less than a minute
	Bench = record.Bench // a quarter of an hour
	Full  = record.Full  // hours
)

// Part is modes × services × paths × loads, in every round or in each so-manieth.
type Part struct {
	Modes    []string
	Services []int
	Paths    []rig.Path
	Loads    []string
	Every    int // 0: in each
}

// Plan of a run.
type Plan struct {
	Kind      string
	Parts     []Part
	Rounds    int
	Budget    time.Duration // no round begins that would end later
	Times     measure.Times
	FlowSlots int
	WarmUp    bool // a round that is not recorded
}

var (
	everyLoad = names(measure.Loads)
	calmLoads = slices.DeleteFunc(names(measure.Loads), isFlood)
	allFloods = slices.DeleteFunc(names(measure.Loads), func(name string) bool { return !isFlood(name) })
	oneWorker = []string{"lace", "lace-off", "nft", "iptables", "xdp", "asavie", "direct"}
)

func names(loads []measure.Load) (out []string) {
	for _, l := range loads {
		out = append(out, l.Name)
	}
	return out
}

func isFlood(load string) bool { return strings.HasPrefix(load, "flood-") }

// New makes the plan of a kind of run.
func New(kind string) (*Plan, error) {
	switch kind {
	case Smoke:
		return &Plan{
			Kind: kind, Rounds: 1, Budget: time.Minute, FlowSlots: 1 << 18,
			Times: measure.Times{Warm: 20 * time.Millisecond, For: 60 * time.Millisecond, NewFlows: 1 << 13},
			Parts: []Part{
				{Modes: oneWorker, Services: one, Paths: node, Loads: everyLoad},
				{Modes: []string{"lace", "lace-stack", "nft"}, Services: one, Paths: []rig.Path{rig.Across, rig.Outside}, Loads: []string{"udp-frames", "tcp-1"}},
			},
		}, nil
	case Bench:
		return &Plan{
			Kind: kind, Rounds: 12, Budget: 14 * time.Minute, FlowSlots: 1 << 20, WarmUp: true,
			Times: measure.Times{Warm: 150 * time.Millisecond, For: 500 * time.Millisecond, NewFlows: 1 << 16},
			Parts: append(judged(), beside()...),
		}, nil
	case Full:
		return &Plan{
			Kind: kind, Rounds: 9, Budget: 6 * time.Hour, FlowSlots: 1 << 20, WarmUp: true,
			Times: measure.Times{Warm: 500 * time.Millisecond, For: 1500 * time.Millisecond, NewFlows: 1 << 16},
			Parts: []Part{{Modes: rig.Names(), Services: []int{1, 1000, 10000}, Paths: rig.Paths, Loads: everyLoad}},
		}, nil
	}
	return nil, fmt.Errorf("no kind of run %q: say %s, %s or %s", kind, Smoke, Bench, Full)
}

var (
	one  = []int{1}
	node = []rig.Path{rig.Node}
)

// judged are the parts that goals are judged by: in each round.
func judged() []Part {
	return []Part{
		{Modes: []string{"lace", "nft"}, Services: one, Paths: node, Loads: []string{"udp-frames", "udp-sockets", "udp-new", "tcp-1", "tcp-8", "connect", "rtt"}},
		{Modes: []string{"lace", "nft"}, Services: one, Paths: []rig.Path{rig.Outside}, Loads: []string{"udp-frames", "tcp-1"}},
		{Modes: []string{"lace"}, Services: []int{10000}, Paths: node, Loads: []string{"udp-frames", "udp-new"}},
		{Modes: []string{"lace", "direct"}, Services: one, Paths: node, Loads: []string{"direct-frames", "direct-tcp"}},
		{Modes: []string{"lace-off", "asavie"}, Services: one, Paths: node, Loads: []string{"udp-frames", "udp-new"}},
		{Modes: []string{"lace", "nft"}, Services: one, Paths: node, Loads: []string{"flood-syn", "flood-udp"}},
	}
}

// beside is what stands beside the goals in the table: in every third round.
func beside() []Part {
	const every = 3
	return []Part{
		{Modes: oneWorker, Services: one, Paths: node, Loads: calmLoads, Every: every},
		{Modes: []string{"lace", "lace-off", "nft", "iptables", "direct"}, Services: one, Paths: []rig.Path{rig.Outside}, Loads: []string{"udp-frames", "udp-new", "tcp-1", "connect", "rtt", "floor"}, Every: every},
		{Modes: []string{"lace", "nft", "direct"}, Services: one, Paths: []rig.Path{rig.Across}, Loads: []string{"udp-frames", "tcp-1", "tcp-8", "rtt"}, Every: every},
		{Modes: []string{"lace", "nft"}, Services: []int{10000}, Paths: node, Loads: []string{"udp-frames", "udp-new", "connect"}, Every: every},
		{Modes: []string{"lace-stack"}, Services: one, Paths: node, Loads: []string{"udp-frames", "udp-new", "tcp-1", "connect", "rtt", "direct-frames"}, Every: every},
		{Modes: []string{"lace-stack"}, Services: one, Paths: []rig.Path{rig.Outside}, Loads: []string{"udp-frames", "tcp-1"}, Every: every},
		{Modes: []string{"lace-w2", "lace-off-w2"}, Services: one, Paths: node, Loads: []string{"udp-frames", "udp-new", "tcp-8", "connect", "rtt"}, Every: every},
		{Modes: []string{"lace", "lace-stack", "nft", "direct"}, Services: one, Paths: node, Loads: allFloods, Every: every},
	}
}

// Narrow leaves out what is not named; an empty list names everything.
func (p *Plan) Narrow(modes, loads []string, services []int, paths []rig.Path) {
	for i := range p.Parts {
		part := &p.Parts[i]
		part.Modes, part.Loads = among(part.Modes, modes), among(part.Loads, loads)
		part.Services, part.Paths = among(part.Services, services), among(part.Paths, paths)
	}
}

func among[T comparable](have, named []T) []T {
	if len(named) == 0 {
		return have
	}
	return slices.DeleteFunc(slices.Clone(have), func(v T) bool { return !slices.Contains(named, v) })
}

// Place is a rig: a mode with a number of services.
type Place struct {
	Mode     string
	Services int
}

// Step is what is measured together: one load on one path, at several places.
type Step struct {
	Load   *measure.Load
	Path   rig.Path
	Places []Place
	every  map[Place]int // in which rounds; absent: in each
}

// Steps are in the order in which each round takes them. Skips are what was asked for and
// cannot be.
func (p *Plan) Steps() (steps []Step, skips []record.Skip, err error) {
	for _, part := range p.Parts {
		for _, path := range part.Paths {
			for _, name := range part.Loads {
				load, err := measure.Find(name)
				if err != nil {
					return nil, nil, err
				}
				places, skipped, err := part.places(load, path)
				if err != nil {
					return nil, nil, err
				}
				skips = append(skips, skipped...)
				steps = merge(steps, newStep(load, path, places, part.Every))
			}
		}
	}
	return steps, skips, nil
}

func (p *Part) places(load *measure.Load, path rig.Path) (places []Place, skips []record.Skip, err error) {
	for _, services := range p.Services {
		for _, name := range p.Modes {
			mode, err := rig.Find(name)
			if err != nil {
				return nil, nil, err
			}
			why, want := load.Refuses(mode, path)
			if why == "" && !mode.Takes(services) {
				why, want = "it has no services to have many of", false
			}
			switch {
			case why == "":
				places = append(places, Place{name, services})
			case want && services == p.Services[0]:
				skips = append(skips, record.Skip{What: fmt.Sprintf("%s of %s on path %s", load.Name, name, path), Why: why})
			}
		}
	}
	return places, skips, nil
}

func newStep(load *measure.Load, path rig.Path, places []Place, every int) Step {
	s := Step{Load: load, Path: path, Places: places, every: map[Place]int{}}
	for _, place := range places {
		s.every[place] = max(every, 1)
	}
	return s
}

// merge joins what different parts say of one load and path, so that it is measured in one
// go.
func merge(steps []Step, s Step) []Step {
	if len(s.Places) == 0 {
		return steps
	}
	i := slices.IndexFunc(steps, func(have Step) bool { return have.Load == s.Load && have.Path == s.Path })
	if i < 0 {
		return append(steps, s)
	}
	have := &steps[i]
	for _, place := range s.Places {
		if often, ok := have.every[place]; ok {
			have.every[place] = min(often, s.every[place])
			continue
		}
		have.Places, have.every[place] = append(have.Places, place), s.every[place]
	}
	return steps
}

// Turn is the order of a step's places in a round: another one begins each time.
func (s *Step) Turn(round int) (out []Place) {
	k := round % len(s.Places)
	for _, place := range slices.Concat(s.Places[k:], s.Places[:k]) {
		if round%max(s.every[place], 1) == 0 {
			out = append(out, place)
		}
	}
	return out
}

// Asked is what steps measure, by mode.
func Asked(steps []Step) map[string][]record.Measurement {
	out := map[string][]record.Measurement{}
	for _, s := range steps {
		for _, place := range s.Places {
			out[place.Mode] = append(out[place.Mode], record.Measurement{Load: s.Load.Name, Path: string(s.Path), Services: place.Services})
		}
	}
	return out
}

// Rigs are the places that steps need.
func Rigs(steps []Step) (out []Place) {
	for _, s := range steps {
		for _, place := range s.Places {
			if !slices.Contains(out, place) {
				out = append(out, place)
			}
		}
	}
	return out
}
