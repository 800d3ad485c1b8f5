package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// floodTick is how often a flood makes what is due. What a softirq carries in one go is
	// as long as what is made in one.
	floodTick = 250 * time.Microsecond
	// floodBehind is how much of what it could not make in time a flood makes up for.
	floodBehind = 8 * floodTick
)

// Flood makes frames at a bounded rate, beside what is measured.
type Flood struct {
	stop context.CancelFunc
	done chan struct{}
	made int
	took time.Duration
	err  error
}

// Flood begins to make the frames of Use at a rate, in packets per second, until Stop or the
// end of ctx. Its thread has one processor and no real-time priority: it is to be a program
// like any other, and softirqs of what it sends run in it as they do in a sender's.
func (g *Frames) Flood(ctx context.Context, cpu, rate int) *Flood {
	ctx, stop := context.WithCancel(ctx)
	f := &Flood{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.err = g.space.Do(func() error { return f.run(ctx, g, cpu, rate) })
	}()
	return f
}

// Stop ends the flood and says how many packets a second it has made: fewer than asked for
// where the processor was not to be had.
func (f *Flood) Stop() (rate float64, err error) {
	f.stop()
	<-f.done
	if f.err != nil {
		return 0, fmt.Errorf("flood: %w", f.err)
	}
	return float64(f.made) / f.took.Seconds(), nil
}

func (f *Flood) run(ctx context.Context, g *Frames, cpu, rate int) error {
	if err := Pin(0, cpu); err != nil {
		return err
	}
	begun := time.Now()
	defer func() { f.took = time.Since(begun) }()
	var owed meteredRate
	for last := begun; ctx.Err() == nil; {
		now := time.Now()
		n := owed.due(rate, now.Sub(last))
		last = now
		if n > 0 {
			made, err := g.make(n)
			if f.made += made; err != nil {
				return err
			}
		}
		rest(floodTick - time.Since(now))
	}
	return nil
}

// meteredRate is what is left over of a packet.
type meteredRate struct{ fraction float64 }

// due is how many packets a rate owes for the time since the last call. Time beyond
// floodBehind is lost: a flood that was held up does not come all at once.
func (m *meteredRate) due(rate int, passed time.Duration) int {
	owed := m.fraction + float64(rate)*min(passed, floodBehind).Seconds()
	n := int(owed)
	m.fraction = owed - float64(n)
	return n
}

func rest(d time.Duration) {
	if d <= 0 {
		return
	}
	t := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&t, nil) // a signal may cut it short
}
