package load

import (
	"testing"
	"time"
)

// TestPaceOfACount: bursts grow until they take as long as they should, and the sum is what
// was asked for.
func TestPaceOfACount(t *testing.T) {
	const each = time.Microsecond
	now := time.Now()
	p := pace{left: 100_000}
	sum, bursts := 0, 0
	for n := p.first(now); n > 0; n = p.next(n, time.Duration(n)*each, now) {
		if took := time.Duration(n) * each; took > burstTime {
			t.Fatalf("a burst of %d packets takes %s", n, took)
		}
		sum, bursts = sum+n, bursts+1
	}
	if sum != 100_000 || bursts > 40 {
		t.Errorf("%d packets in %d bursts", sum, bursts)
	}
}

// TestPaceOfATime: it ends when the time is over, whatever was made.
func TestPaceOfATime(t *testing.T) {
	now := time.Now()
	p := pace{until: now.Add(50 * time.Millisecond)}
	bursts := 0
	for n := p.first(now); n > 0; bursts++ {
		now = now.Add(burstTime)
		n = p.next(n, burstTime, now)
	}
	if bursts != 10 {
		t.Errorf("%d bursts of 5 ms in 50 ms", bursts)
	}
}

// TestPaceOfACallThatWasCutShort: what was not made is made later.
func TestPaceOfACallThatWasCutShort(t *testing.T) {
	p := pace{left: leastMade}
	if n := p.first(time.Now()); n != leastMade {
		t.Fatalf("begins with %d", n)
	}
	if n := p.next(100, time.Millisecond, time.Now()); n != leastMade-100 {
		t.Errorf("goes on with %d, want the rest, %d", n, leastMade-100)
	}
	if n := p.next(0, 0, time.Now()); n != leastMade-100 {
		t.Errorf("after none was made: %d", n)
	}
}
