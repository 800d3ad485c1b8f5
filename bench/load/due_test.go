package load

import (
	"testing"
	"time"
)

// TestDue: nothing of a rate is lost to rounding, and what was held up for long is not made
// up for.
func TestDue(t *testing.T) {
	var m meteredRate
	total := 0
	for range 1000 {
		total += m.due(100_100, floodTick)
	}
	if total < 25024 || total > 25025 {
		t.Errorf("%d packets in a quarter of a second, want 25025", total)
	}
	m = meteredRate{}
	if n := m.due(100_000, time.Second); n != 200 {
		t.Errorf("%d packets after a second's sleep, want those of %s", n, floodBehind)
	}
}
