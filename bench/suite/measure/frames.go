package measure

import (
	"errors"
	"fmt"
	"net/netip"

	"lace-cni.io/lace/bench/load"
	"lace-cni.io/lace/bench/suite/rig"
)

const (
	frameFlows  = 4096
	socketFlows = 256
	// exchanges is how often each flow is answered before it counts as established: more
	// than any fast path waits for.
	exchanges = 8
)

// sinks take what arrives at the backends of a path.
type sinks []*load.Sink

func (b *bench) openSinks() (s sinks, err error) {
	for _, name := range b.path.Backends() {
		k, err := load.OpenSink(b.Space(name), "eth0", rig.BackendPort, false)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s = append(s, k)
	}
	return s, nil
}

func (s sinks) set(m load.Mode) error {
	for _, k := range s {
		if err := k.Set(m); err != nil {
			return err
		}
	}
	return nil
}

func (s sinks) taken() (total uint64, err error) {
	for _, k := range s {
		n, err := k.Taken()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (s sinks) Close() error {
	var errs []error
	for _, k := range s {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

// frames sets a generator and the sinks up, with the serving threads on the generator's
// processor, and runs f.
func (b *bench) frames(to netip.AddrPort, first, count int, f func(*load.Frames, sinks) (Values, error)) (v Values, err error) {
	s, err := b.openSinks()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	space, device, flows, err := b.Entrance(b.path)
	if err != nil {
		return nil, err
	}
	g, err := load.OpenFrames(space, device)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	flows.To, flows.First, flows.Count = to, first, count
	if err := g.Use(flows); err != nil {
		return nil, err
	}
	err = b.placed(func() error {
		v, err = f(g, s)
		return err
	})
	return v, err
}

// placed runs f while the threads that serve are on the processor of the generator.
func (b *bench) placed(f func() error) error {
	processes := b.Processes()
	err := load.Place(processes, b.cpu)
	if err == nil {
		err = f()
	}
	return errors.Join(err, load.Release(processes))
}

func (b *bench) loop(s sinks) load.Loop {
	return load.Loop{CPU: b.cpu, Processes: b.Processes(), For: b.times.For, Arrived: s.taken}
}

// values of a closed loop; punted is what user space received meanwhile, per packet sent.
func (b *bench) values(run func() (load.Cost, error)) (Values, error) {
	before, knows := b.Punted()
	c, err := run()
	if err != nil {
		return nil, err
	}
	if c.Arrived == 0 {
		return nil, fmt.Errorf("none of %d packets arrived", c.Sent)
	}
	v := Values{
		"ns": c.PerPacket(), "mpps": 1e3 / c.PerPacket(), "loss": c.Loss(),
		"wall-mpps": float64(c.Arrived) / c.Wall.Seconds() / 1e6,
	}
	if after, _ := b.Punted(); knows {
		v["punted"] = float64(after-before) / float64(c.Sent)
	}
	return v, nil
}

// establishedFrames: every flow was answered several times, then frames go one way.
func establishedFrames(b *bench) (Values, error) {
	return b.frames(b.Target(b.path), 0, frameFlows, func(g *load.Frames, s sinks) (Values, error) {
		if err := s.set(load.Answer); err != nil {
			return nil, err
		}
		if err := g.Warm(b.ctx, b.cpu, exchanges*frameFlows); err != nil {
			return nil, err
		}
		return b.swallow(g, s)
	})
}

// swallow measures frames that are dropped at the backends.
func (b *bench) swallow(g *load.Frames, s sinks) (Values, error) {
	if err := s.set(load.Swallow); err != nil {
		return nil, err
	}
	return b.values(func() (load.Cost, error) { return g.Run(b.ctx, b.loop(s)) })
}

// onewayFrames: other flows than the established ones, which no sink answers.
func onewayFrames(b *bench) (Values, error) {
	return b.frames(b.Target(b.path), frameFlows, frameFlows, func(g *load.Frames, s sinks) (Values, error) {
		if err := s.set(load.Swallow); err != nil {
			return nil, err
		}
		if err := g.Warm(b.ctx, b.cpu, exchanges*frameFlows); err != nil {
			return nil, err
		}
		return b.swallow(g, s)
	})
}

// freshFlows is where the numbers of new flows begin, apart from all others.
const freshFlows = 1 << 15

// masqueraded is how many flows from outside are made at most: the kernel's modes give each
// a port of the node, and would look for the last free ones instead of making flows.
const masqueraded = 1 << 15

// newFrames makes flows that no one has seen, or that were forgotten.
func newFrames(b *bench) (Values, error) {
	n := b.times.NewFlows
	if b.path == rig.Outside {
		n = min(n, masqueraded)
	}
	return b.newFlows(n)
}

func (b *bench) newFlows(n int) (Values, error) {
	first := freshFlows + b.next(n)
	v, err := b.frames(b.Target(b.path), first, n, func(g *load.Frames, s sinks) (Values, error) {
		if err := s.set(load.Swallow); err != nil {
			return nil, err
		}
		l := b.loop(s)
		l.Packets = n
		return b.values(func() (load.Cost, error) { return g.Run(b.ctx, l) })
	})
	return v, errors.Join(err, b.Forget())
}

// directFrames are not addressed to a service.
func directFrames(b *bench) (Values, error) {
	return b.frames(b.Pod(b.path), 2*frameFlows, frameFlows, func(g *load.Frames, s sinks) (Values, error) {
		if err := s.set(load.Swallow); err != nil {
			return nil, err
		}
		if err := g.Warm(b.ctx, b.cpu, frameFlows); err != nil {
			return nil, err
		}
		return b.swallow(g, s)
	})
}

// floorFrames are dropped by the first thing that could see them.
func floorFrames(b *bench) (Values, error) {
	return b.frames(b.Pod(b.path), 3*frameFlows, frameFlows, func(g *load.Frames, _ sinks) (Values, error) {
		device := "shopper"
		if b.path == rig.Outside {
			device = "eth0"
		}
		floor, err := load.OpenFloor(b.Space("n1"), device)
		if err != nil {
			return nil, err
		}
		defer floor.Close()
		l := b.loop(nil)
		l.Arrived = floor.Taken
		return b.values(func() (load.Cost, error) { return g.Run(b.ctx, l) })
	})
}

// establishedSockets: real sockets, each answered, then datagrams one way.
func establishedSockets(b *bench) (v Values, err error) {
	d, err := load.OpenDatagrams(b.Client(b.path), b.Target(b.path), socketFlows)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.Establish(b.ctx, patience); err != nil {
		return nil, err
	}
	s, err := b.openSinks()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.set(load.Answer); err != nil {
		return nil, err
	}
	err = b.placed(func() error {
		if err := d.Warm(b.ctx, b.cpu, exchanges*32*socketFlows); err != nil {
			return err
		}
		if err := s.set(load.Swallow); err != nil {
			return err
		}
		v, err = b.values(func() (load.Cost, error) { return d.Run(b.ctx, b.loop(s)) })
		return err
	})
	return v, err
}
