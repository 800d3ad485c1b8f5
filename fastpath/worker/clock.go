package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// epoch ties Go's monotonic clock to CLOCK_MONOTONIC, which is what it reads on Linux:
// the difference between the two is a constant, and reading the time needs no system
// call.
var epoch = func() (e struct {
	start time.Time
	ns    int64
}) {
	var ts unix.Timespec
	e.start = time.Now()
	// The call cannot fail: the clock exists and the pointer is valid.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	e.ns = ts.Nano()
	return e
}()

// Now is the time of CLOCK_MONOTONIC in nanoseconds, within some microseconds: the clock
// that the BPF programs read, from which ticks of the flow table are made.
func Now() int64 { return epoch.ns + int64(time.Since(epoch.start)) }
