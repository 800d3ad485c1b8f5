package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"lace-cni.io/lace/bench/load"
)

const (
	floodFlows = 4096
	// floodRate is more than any processor makes, in packets a second: the generator is busy all
	// the time.
	floodRate = 20_000_000
	// Before a flow is flooded it was answered several times, as established ones are.
	answerRate = 50_000
	answerFor  = time.Second
	// floodFirst is how long a flood lasts before the change.
	floodFirst = 300 * time.Millisecond
)

// flood is full packet load on a side: one processor does nothing but send datagrams of
// established flows through the node, as a program of the client's would. They end where they
// come into the server.
type flood struct {
	frames        *load.Frames
	sink, answers *load.Sink
	running       *load.Flood
	before        uint64
	begun         time.Time
	cpu           int
}

// errNoLoad is wrapped when a change was measured without load that was to be there.
var errNoLoad = errors.New("nothing arrived")

func (b *bench) openFloods(ctx context.Context) (map[*side]*flood, error) {
	floods := map[*side]*flood{}
	for _, s := range b.stage.sides {
		b.progress("establishing %d flows through %s", floodFlows, s.name)
		f := &flood{cpu: runtime.NumCPU() - 1} // the first has most of the machine's interrupts
		floods[s] = f
		if err := f.open(ctx, s); err != nil {
			return floods, fmt.Errorf("load on %s: %w", s.name, err)
		}
	}
	return floods, nil
}

func (f *flood) open(ctx context.Context, s *side) (err error) {
	if err := s.host.SetOffload(s.pods[0], load.GRO, true); err != nil { // or it takes no frames
		return err
	}
	if f.sink, err = load.OpenSink(s.server, "eth0", floodedPort, false); err != nil {
		return err
	}
	if f.answers, err = load.OpenSink(s.client, "eth0", servicePort, true); err != nil {
		return err
	}
	if f.frames, err = load.OpenFrames(s.client, "eth0"); err != nil {
		return err
	}
	flows, err := s.flows()
	if err != nil {
		return err
	}
	if err := f.frames.Use(flows); err != nil {
		return err
	}
	return f.establish(ctx)
}

// flows from the client's own address to the flooded Service.
func (s *side) flows() (f load.Flows, err error) {
	f.From, f.To, f.Count = s.from, s.flooded, floodFlows
	if f.Source, err = s.client.MAC("eth0"); err != nil {
		return f, err
	}
	f.Destination, err = s.host.MAC(s.pods[0])
	return f, err
}

// establish has every flow answered, and says when answers do not come.
func (f *flood) establish(ctx context.Context) error {
	if err := errors.Join(f.sink.Set(load.Answer), f.answers.Set(load.Swallow)); err != nil {
		return err
	}
	slow := f.frames.Flood(ctx, f.cpu, answerRate)
	rest(ctx, answerFor)
	if _, err := slow.Stop(); err != nil {
		return err
	}
	n, err := f.answers.Taken()
	switch {
	case err != nil:
		return err
	case n < floodFlows:
		return fmt.Errorf("%d answers on %d flows", n, floodFlows)
	}
	return errors.Join(f.sink.Set(load.Swallow), f.answers.Set(load.Ignore))
}

// begin floods until over is called.
func (f *flood) begin(ctx context.Context) (err error) {
	if f.before, err = f.sink.Taken(); err != nil {
		return err
	}
	f.begun = time.Now()
	f.running = f.frames.Flood(ctx, f.cpu, floodRate)
	return nil
}

// over ends it and says how many packets a second arrived.
func (f *flood) over() (rate float64, err error) {
	made, err := f.running.Stop()
	took := time.Since(f.begun).Seconds()
	after, failed := f.sink.Taken()
	if err = errors.Join(err, failed); err == nil && after == f.before {
		err = fmt.Errorf("%w of %.0f packets a second", errNoLoad, made)
	}
	return float64(after-f.before) / took, err
}

// Close takes everything off the devices.
func (f *flood) Close() {
	for _, k := range []*load.Sink{f.sink, f.answers} {
		if k != nil {
			k.Close()
		}
	}
	if f.frames != nil {
		f.frames.Close()
	}
}
