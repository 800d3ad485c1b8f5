package worker

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const micro = int64(time.Microsecond)

func TestGather(t *testing.T) {
	cases := []struct {
		sentence string
		gap      int64 // between drains
		frames   int   // per drain while not pausing
		pausing  int   // frames per drain while pausing; 0: does not matter
		rushed   bool
	}{
		{"single frames a millisecond apart", 1000 * micro, 1, 0, false},
		{"request and answer, 40 µs apart", 40 * micro, 1, 0, false},
		{"single frames 15 µs apart gather four at a time", 15 * micro, 1, 4, true},
		{"full batches without a rest", 8 * micro, 64, 64, true},
		{"single frames that come no faster when waited for", 15 * micro, 1, 1, false},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			var g gather
			now := int64(time.Hour)
			rushed := 0
			const drains = 1000
			for range drains {
				n, gap := c.frames, c.gap
				if g.rushed() {
					n, gap = c.pausing, gap+int64(pause)
					rushed++
				}
				now += gap
				g.drained(now, n)
			}
			if mostly := rushed > drains/2; mostly != c.rushed {
				t.Errorf("paused before %d of %d drains, want mostly %v", rushed, drains, c.rushed)
			}
		})
	}
}

func TestGatherEndsWithTheFirstLull(t *testing.T) {
	var g gather
	now := int64(time.Hour)
	for range 1000 {
		now += 10 * micro
		g.drained(now, 8)
	}
	if !g.rushed() {
		t.Fatal("does not pause under load")
	}
	g.drained(now+2*restful, 1)
	if g.rushed() {
		t.Error("pauses after a lull")
	}
}

func TestSweepWalksTheWholeTableOncePerTour(t *testing.T) {
	cases := []struct {
		sentence string
		slots    int
		step     int64 // between looks
		least    int   // slots in one tour
		most     int
		once     int // most slots at once
	}{
		{"under load, a look every 100 µs", 1 << 20, 100 * micro, 1<<20 - 1<<12, 1 << 20, 512},
		{"idle, a look every 100 ms", 1 << 20, 100_000 * micro, 1<<20 - 1<<15, 1 << 20, 1 << 15},
		{"a table smaller than a portion", 64, 100_000 * micro, 45, 64, 64},
		{"no table to sweep", 0, 1000 * micro, 0, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			s := sweep{slots: c.slots, last: int64(time.Hour)}
			walked := 0
			for now := int64(time.Hour); now < int64(time.Hour)+tour; now += c.step {
				n := s.due(now)
				if n > c.once {
					t.Fatalf("%d slots at once, want at most %d", n, c.once)
				}
				walked += n
			}
			if walked < c.least || walked > c.most {
				t.Errorf("walked %d slots in a tour, want %d to %d", walked, c.least, c.most)
			}
		})
	}
}

func TestSweepDoesNotMakeUpForALongPause(t *testing.T) {
	s := sweep{slots: 1 << 20, last: int64(time.Hour)}
	if n := s.due(int64(2 * time.Hour)); n > (1<<20)/4 {
		t.Errorf("%d slots at once after an hour", n)
	}
}

// TestNowIsTheKernelsMonotonicClock: BPF programs and other processes compare with it.
func TestNowIsTheKernelsMonotonicClock(t *testing.T) {
	read := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		return ts.Nano()
	}
	const slack = int64(time.Millisecond)
	for range 100 {
		before := read()
		now := Now()
		after := read()
		if now < before-slack || now > after+slack {
			t.Fatalf("Now is %d, the kernel says %d to %d", now, before, after)
		}
	}
}
