package dataplane

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// userHZ is the unit of times in /proc, the same on every kernel that Go runs on.
const userHZ = 100

// age is how long ago this process was started by its parent, to a hundredth of a second:
// loading the program and starting Go's runtime included.
func age() (time.Duration, error) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("clock since boot: %w", err)
	}
	started, err := startedAt(b)
	return (time.Duration(now.Nano()) - started).Round(time.Millisecond), err
}

// startedAt takes a process's start, since boot, from /proc/PID/stat (proc(5)): field 22,
// counted behind the name, which may hold anything.
func startedAt(stat []byte) (time.Duration, error) {
	const behindName = 22 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= behindName {
		return 0, fmt.Errorf("/proc/self/stat has %d fields behind the name, want more than %d", len(fields), behindName)
	}
	ticks, err := strconv.ParseUint(string(fields[behindName]), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("/proc/self/stat: start of the process: %w", err)
	}
	return time.Duration(ticks) * (time.Second / userHZ), nil
}
