package measure

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"lace-cni.io/lace/bench/load"
	"lace-cni.io/lace/bench/suite/rig"
	"lace-cni.io/lace/bench/suite/stats"
)

// Rates of floods, in packets per second: the generator takes a few hundredths of a processor
// for the lower one.
const (
	floodRate   = 100_000
	floodFaster = 300_000
)

// underFlood are the kinds whose others are looked at while one floods. In that without
// services the flood ends where it enters the node: what is left is what the generator itself
// takes from others.
var underFlood = []rig.Kind{rig.Lace, rig.Nft, rig.Direct}

// floodLoads are of pairs: the round trips of others without and with a flood.
func floodLoads() (out []Load) {
	for _, f := range []struct {
		name, what string
		syn        bool
		rate       int
	}{
		{"flood-syn", "a pod floods a service with 100,000 SYNs a second", true, floodRate},
		{"flood-udp", "a pod opens 100,000 UDP flows a second", false, floodRate},
		{"flood-syn-300k", "a pod floods a service with 300,000 SYNs a second", true, floodFaster},
		{"flood-udp-300k", "a pod opens 300,000 UDP flows a second", false, floodFaster},
	} {
		out = append(out, Load{
			Name: f.name, Field: "p99-times", Unit: "times", Less: true, Only: underFlood, On: rig.Node,
			What: f.what + ": p99 of others' round trips, with ÷ without",
			run:  func(b *bench) (Values, error) { return b.flooded(f.syn, f.rate) },
		})
	}
	return out
}

// flood is one measurement in work.
type flood struct {
	*bench
	frames *load.Frames
	end    end
	others *load.Conversation
	rate   int
	made   []float64 // rates that were reached
}

// end is where the packets of a flood are counted and dropped.
type end interface {
	Taken() (uint64, error)
	Close() error
}

// openEnd is behind the node, or in front of it where there is nothing to be flooded.
func (b *bench) openEnd(syn bool) (end, error) {
	if b.Mode.Kind == rig.Direct {
		f, err := load.OpenFloor(b.Space("n1"), "shopper")
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	space, device := b.FloodEnd()
	open := load.OpenSink
	if syn {
		open = load.OpenTCPSink
	}
	k, err := open(space, device, rig.BackendPort, false)
	if err != nil {
		return nil, err
	}
	return k, k.Set(load.Swallow)
}

// flooded measures others' round trips in four turns, without, with, with and without the
// flood, so that what drifts falls on both alike, and counts their new connections in a
// fifth.
func (b *bench) flooded(syn bool, rate int) (Values, error) {
	f := &flood{bench: b, rate: rate}
	err := f.open(syn)
	var v Values
	if err == nil {
		v, err = f.run()
	}
	if err := errors.Join(err, f.close(), b.Forget()); err != nil {
		return nil, err
	}
	limit, err := b.Calm(b.ctx)
	v["limited"] = float64(limit)
	return v, err
}

func (f *flood) open(syn bool) (err error) {
	if f.end, err = f.openEnd(syn); err != nil {
		return err
	}
	space, device, flows, err := f.Entrance(rig.Node)
	if err != nil {
		return err
	}
	if f.frames, err = load.OpenFrames(space, device); err != nil {
		return err
	}
	flows.SYN, flows.To, flows.Count = syn, f.Flooded(), f.flows()
	flows.First = freshFlows + f.next(flows.Count)
	if err := f.frames.Use(flows); err != nil {
		return err
	}
	client, to := f.Others()
	f.others, err = load.OpenConversation(client, to)
	return err
}

// mostFlooded is how many flows a flood has at most: half of those that there are numbers
// for. One that is longer begins again.
const mostFlooded = 1 << 20

// flows that the flood makes in its three turns, as the power of two above.
func (f *flood) flows() int {
	seconds := (3*f.turn() + 3*f.warm()).Seconds()
	return min(1<<bits.Len(uint(seconds*float64(f.rate))), mostFlooded)
}

// turn is how long each is, warm what comes before it and does not count.
func (f *flood) turn() time.Duration { return f.times.For / 2 }
func (f *flood) warm() time.Duration { return f.times.Warm / 4 }

func (f *flood) close() error {
	var errs []error
	if f.others != nil {
		errs = append(errs, f.others.Close())
	}
	if f.frames != nil {
		errs = append(errs, f.frames.Close())
	}
	if f.end != nil {
		errs = append(errs, f.end.Close())
	}
	return errors.Join(errs...)
}

// asked are the round trips of both protocols.
type asked struct{ udp, tcp load.Exchanged }

func (f *flood) run() (Values, error) {
	var without, with asked
	before, err := f.end.Taken()
	if err != nil {
		return nil, err
	}
	for _, flooding := range []bool{false, true, true, false} {
		into := &without
		if flooding {
			into = &with
		}
		if err := f.take(into, flooding); err != nil {
			return nil, err
		}
	}
	v := Values{}
	if err := f.connect(v); err != nil {
		return nil, err
	}
	after, err := f.end.Taken()
	if err != nil {
		return nil, err
	}
	v["flood"], v["flood-carried"] = stats.Median(f.made), float64(after-before)
	if after == before {
		return nil, errors.New("nothing of the flood was carried")
	}
	return v, v.roundTrips(without, with)
}

// take is one turn of round trips.
func (f *flood) take(into *asked, flooding bool) error {
	return f.during(flooding, func() error {
		if _, _, err := f.others.Ask(f.ctx, f.warm()); err != nil {
			return err
		}
		udp, tcp, err := f.others.Ask(f.ctx, f.turn())
		into.udp.Times, into.tcp.Times = append(into.udp.Times, udp.Times...), append(into.tcp.Times, tcp.Times...)
		into.udp.Failed, into.tcp.Failed = into.udp.Failed+udp.Failed, into.tcp.Failed+tcp.Failed
		return err
	})
}

// during runs what is measured, with the flood or without.
func (f *flood) during(flooding bool, run func() error) error {
	if !flooding {
		return run()
	}
	flood := f.frames.Flood(f.ctx, f.cpu, f.rate)
	err := run()
	rate, stopped := flood.Stop()
	f.made = append(f.made, rate)
	return errors.Join(err, stopped)
}

// connect counts the new connections of others during the flood. That none succeeds is a
// figure too.
func (f *flood) connect(v Values) error {
	client, to := f.Others()
	var e load.Exchanged
	err := f.during(true, func() (err error) {
		e, err = load.Connections(f.ctx, client, to, 1, f.turn())
		return err
	})
	tried := len(e.Times) + e.Failed
	if err != nil && (tried == 0 || f.ctx.Err() != nil) {
		return err
	}
	v["connects"], v["connected"] = float64(tried), float64(len(e.Times))
	return nil
}

// roundTrips fills in the figures of both protocols: "p99" is of UDP, "tcp-p99" of TCP.
func (v Values) roundTrips(without, with asked) error {
	for _, p := range []struct {
		prefix        string
		without, with load.Exchanged
	}{{"", without.udp, with.udp}, {"tcp-", without.tcp, with.tcp}} {
		if len(p.without.Times) == 0 || len(p.with.Times) == 0 {
			return fmt.Errorf("%sround trips of others: %d answered without the flood and %d with it", p.prefix, len(p.without.Times), len(p.with.Times))
		}
		for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
			quiet, loud := stats.Quantile(micros(p.without.Times), q), stats.Quantile(micros(p.with.Times), q)
			v[p.prefix+"quiet-"+name], v[p.prefix+name], v[p.prefix+name+"-times"] = quiet, loud, loud/quiet
		}
		v["failed"] += float64(p.with.Failed)
		v["quiet-failed"] += float64(p.without.Failed)
	}
	return nil
}
