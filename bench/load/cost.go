package load

import (
	"fmt"
	"time"
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
	Packets   int           // how many to send, in one call; 0: as long as For says
	Burst     int           // how many to send between looks at the clock; 0: so many that a call costs nothing
	Arrived   func() (uint64, error)
}

// source makes packets in the calling thread and tells how many it has made.
type source interface {
	burst(n int) error
	count() (uint64, error)
}

type framesSource struct{ *Frames }

func (s framesSource) burst(n int) error      { return s.make(n) }
func (s framesSource) count() (uint64, error) { return s.made() }

// Run makes frames in a closed loop and returns what they cost.
func (g *Frames) Run(l Loop) (c Cost, err error) {
	err = g.space.Do(func() error {
		c, err = l.run(framesSource{g}, callFrames)
		return err
	})
	return c, err
}

// Warm sends n frames without looking at the clock.
func (g *Frames) Warm(cpu, n int) error {
	return g.space.Do(func() error {
		if err := generate(cpu); err != nil {
			return err
		}
		return g.make(n)
	})
}

// generate makes the calling thread a generator.
func generate(cpu int) error {
	if err := Pin(0, cpu); err != nil {
		return err
	}
	return Prefer(0, PriorityGenerator)
}

func (l *Loop) run(s source, size int) (Cost, error) {
	if err := generate(l.CPU); err != nil {
		return Cost{}, err
	}
	m := &meter{cpu: l.CPU, processes: l.Processes, softirq: SoftirqThread(l.CPU)}
	before, err := l.reading(s, m)
	if err != nil {
		return Cost{}, err
	}
	start := time.Now()
	if l.Packets > 0 {
		err = s.burst(l.Packets)
	} else {
		if l.Burst > 0 {
			size = l.Burst
		}
		for err == nil && time.Since(start) < l.For {
			err = s.burst(size)
		}
	}
	if err != nil {
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
