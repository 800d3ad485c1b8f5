package pipeline

// limit is a token bucket for answers: so many per second, and as many at once after a
// second of silence. It is kept as the time up to which the tokens are spent.
type limit struct{ spent int64 }

const second = int64(1e9)

// take uses up one token at now, in nanoseconds of a clock that never goes back, under a
// rate per second. A rate of 0 permits nothing.
func (l *limit) take(now int64, rate uint32) bool {
	if rate == 0 {
		return false
	}
	cost := second / int64(rate)
	spent := max(l.spent, now-second)
	if now-spent < cost {
		return false
	}
	l.spent = spent + cost
	return true
}
