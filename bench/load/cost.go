package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Cost is what a closed loop cost.
type Cost struct {
	Sent, Arrived uint64
	CPU           time.Duration // processor time of all threads involved
	Wall          time.Duration
}

// PerPacket is processor time per packet that arrived, in nanoseconds; 0: none arrived.
func (c Cost) PerPacket() float64 {
	if c.Arrived == 0 {
		return 0
	}
	return float64(c.CPU) / float64(c.Arrived)
}

// Loss is the part of the packets that did not arrive.
func (c Cost) Loss() float64 {
	if c.Sent == 0 {
		return 0
	}
	return 1 - float64(c.Arrived)/float64(c.Sent)
}

// Loop says how to run a closed loop.
type Loop struct {
	CPU       int
	Processes []int         // that serve: their threads were put on the same processor by Place
	For       time.Duration // how long to send; not used with Packets
	Packets   int           // how many to send; 0: as long as For says
	Arrived   func() (uint64, error)
}

// source makes packets in the calling thread and tells how many it has made.
type source interface {
	// burst makes up to n packets and returns how many.
	burst(n int) (int, error)
	count() (uint64, error)
}

type framesSource struct{ *Frames }

func (s framesSource) burst(n int) (int, error) { return s.make(n) }
func (s framesSource) count() (uint64, error)   { return s.made() }

// Run makes frames in a closed loop and returns what they cost. The end of ctx ends it
// with an error within some milliseconds.
func (g *Frames) Run(ctx context.Context, l Loop) (c Cost, err error) {
	err = g.space.Do(func() error {
		c, err = l.run(ctx, framesSource{g})
		return err
	})
	return c, err
}

// Warm sends n frames without looking at what they cost.
func (g *Frames) Warm(ctx context.Context, cpu, n int) error {
	return g.space.Do(func() error {
		if err := generate(cpu); err != nil {
			return err
		}
		return send(ctx, framesSource{g}, pace{left: n})
	})
}

// generate makes the calling thread a generator.
func generate(cpu int) error {
	if err := Pin(0, cpu); err != nil {
		return err
	}
	return Prefer(0, PriorityGenerator)
}

// send makes packets until the pace says that it is enough. Between two bursts the thread
// sleeps a moment: whatever else has to run on its processor, such as the kernel's own
// threads, is never kept away for long.
func send(ctx context.Context, s source, p pace) error {
	for n := p.first(time.Now()); n > 0; {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped with %d packets to make: %w", p.left, context.Cause(ctx))
		}
		start := time.Now()
		made, err := s.burst(n)
		if err != nil {
			return err
		}
		now := time.Now()
		n = p.next(made, now.Sub(start), now)
		breathe()
	}
	return nil
}

// breathe gives the processor away for a moment.
func breathe() {
	t := unix.NsecToTimespec(int64(breath))
	unix.Nanosleep(&t, nil) // a signal may cut it short
}

func (l *Loop) run(ctx context.Context, s source) (Cost, error) {
	if err := generate(l.CPU); err != nil {
		return Cost{}, err
	}
	m := &meter{cpu: l.CPU, processes: l.Processes, softirq: SoftirqThread(l.CPU)}
	before, err := l.reading(s, m)
	if err != nil {
		return Cost{}, err
	}
	start := time.Now()
	if err := send(ctx, s, pace{left: l.Packets, until: start.Add(l.For)}); err != nil {
		return Cost{}, err
	}
	if err := l.settle(); err != nil {
		return Cost{}, err
	}
	after, err := l.reading(s, m)
	if err != nil {
		return Cost{}, err
	}
	return Cost{
		Sent: after.Sent - before.Sent, Arrived: after.Arrived - before.Arrived,
		CPU: after.CPU - before.CPU, Wall: time.Since(start),
	}, nil
}

func (l *Loop) reading(s source, m *meter) (c Cost, err error) {
	if c.Sent, err = s.count(); err != nil {
		return c, err
	}
	if c.Arrived, err = l.Arrived(); err != nil {
		return c, err
	}
	c.CPU, err = m.read()
	return c, err
}

// settle waits until nothing arrives any more: threads that serve run before this one, so
// that little is left to wait for.
func (l *Loop) settle() error {
	last, err := l.Arrived()
	for range 100 {
		if err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
		now, e := l.Arrived()
		if now == last {
			return e
		}
		last, err = now, e
	}
	return fmt.Errorf("packets still arrive 200 ms after the last was sent")
}
