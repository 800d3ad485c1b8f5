package police

// ceiling is where a limit begins, and above which there is none: more than a port can send
// through the kernel's network stack.
const ceiling = 1 << 20

// mostSteps bounds how far a limit goes up at once, to two and a half times: a worker that
// looks may be idle while a busy one had no processor to look.
const mostSteps = 8

// valve is the limit of one kind. The lower its mark, the earlier it closes: packets that
// would open a flow give way before those of flows that exist.
type valve struct {
	mark  float64 // part of the ring that may be full before the valve closes
	floor uint32  // lowest limit, packets per second
	limit uint32  // 0: open
	moved int64   // when the limit was changed last or had to be kept, nanoseconds
}

// step moves the limit, and reports whether it has changed. It comes down by an eighth at a
// time when the ring is a little too full, by half when it is far too full, and goes up by
// an eighth when the ring has been emptier than the mark for a while, for every such while:
// workers with nothing to do look rarely. So the queue of a port that floods stays short,
// and what it may ask stays near to what Go can do.
func (v *valve) step(now int64, full float64) bool {
	before := v.limit
	switch {
	case full >= v.mark:
		v.moved = now
		v.close(full)
	case v.limit != 0 && now-v.moved >= calm:
		v.open(min((now-v.moved)/calm, mostSteps))
		v.moved = now
	}
	return v.limit != before
}

func (v *valve) close(full float64) {
	next := v.limit
	if next == 0 {
		next = ceiling
	}
	if full >= (1+v.mark)/2 || full >= 4*v.mark {
		next /= 2
	} else {
		next -= next / 8
	}
	v.limit = max(next, v.floor)
}

func (v *valve) open(steps int64) {
	for ; steps > 0 && v.limit > 0; steps-- {
		v.limit += max(v.limit/8, 1)
		if v.limit > ceiling || v.floor >= ceiling {
			v.limit = 0
		}
	}
}
