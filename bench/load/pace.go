package load

import "time"

const (
	// burstTime is what one burst should take: nothing can be stopped in between.
	burstTime = 5 * time.Millisecond
	leastMade = 256
	mostMade  = 1 << 16
	// breath is what a generator sleeps between bursts: 1 % of the time.
	breath = 50 * time.Microsecond
)

// pace says how many packets to make in one go: so many that it takes about burstTime, as
// long as there are some left or, with none to begin with, until a moment.
type pace struct {
	left  int
	until time.Time // looked at only where left was 0
	timed bool
	size  int
}

// first is the size of the first burst.
func (p *pace) first(now time.Time) int {
	p.timed, p.size = p.left == 0, leastMade
	return p.bounded(now)
}

// next is the size of the burst after one that made some packets in some time; 0: enough.
func (p *pace) next(made int, took time.Duration, now time.Time) int {
	if made > 0 && took > 0 {
		fit := int(float64(made) * float64(burstTime) / float64(took))
		p.size = min(max(fit, leastMade), 2*p.size, mostMade)
	}
	p.left -= made
	return p.bounded(now)
}

func (p *pace) bounded(now time.Time) int {
	switch {
	case !p.timed:
		return max(0, min(p.size, p.left))
	case now.Before(p.until):
		return p.size
	}
	return 0
}
