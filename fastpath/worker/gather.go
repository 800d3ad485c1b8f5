package worker

import "time"

// A wake-up costs some 15 µs on a busy core, far more than the frame that caused it.
// When frames come faster than that, one by one, the worker lets some gather before it
// drains them; at any lower rate, and after the first lull, it drains at once, so that a
// request and its answer never wait.
const (
	pause   = 50 * time.Microsecond
	hurry   = int64(25 * time.Microsecond) // mean time between wake-ups that is too short
	calm    = 2 * weight                   // mean number of frames per drain below which a pause is not worth it, weighted
	weight  = 16                           // of the past in both means
	restful = int64(time.Millisecond)      // a time between wake-ups that ends the rush at once
)

// gather decides whether to pause between waking up and draining.
type gather struct {
	pausing bool
	last    int64 // previous drain
	gap     int64 // mean time between drains, times weight
	frames  int   // mean number of frames per drain, times weight
}

// drained notes that n frames were found at now.
func (g *gather) drained(now int64, n int) {
	gap := now - g.last
	g.last = now
	if gap > restful {
		*g = gather{last: now, gap: restful * weight}
		return
	}
	g.gap += gap - g.gap/weight
	g.frames += n - g.frames/weight
	switch {
	case g.pausing && g.frames < calm:
		*g = gather{last: now, gap: restful * weight}
	case !g.pausing && g.gap < hurry*weight:
		g.pausing, g.frames = true, 4*weight
	}
}

// rushed reports whether to pause now.
func (g *gather) rushed() bool { return g.pausing }
