package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/xdp"
)

// lively is how old a worker's last sign of life may be. Workers give one at least ten
// times a second.
const lively = 2 * time.Second

// fastpathFile is what fastpath.json says.
type fastpathFile struct {
	PID             int       `json:"pid"`
	Started         time.Time `json:"started"`
	Kernel          string    `json:"kernel"`
	SnapshotLayouts []uint32  `json:"snapshotLayouts"`
	XDPMode         string    `json:"xdpMode"`
	SocketMode      string    `json:"socketMode"`
	Workers         int       `json:"workers"`
	Queues          int       `json:"queues"`
	TrunkMTU        int       `json:"trunkMTU"`
	Sockets         string    `json:"sockets"`
}

// fastpath is what can be seen of the other process at one moment.
type fastpath struct {
	alive   bool
	silence time.Duration // since the last sign of life; 0: there never was one
	message string        // why it is not alive, or what is odd
	file    fastpathFile
	totals  *counter.Totals // nil: no counters
}

// look reads the fast path's files. It never fails: what cannot be read is a message.
func look(c *Config) fastpath {
	f := fastpath{}
	f.totals, f.message = readTotals(c.path("counters"))
	if f.totals != nil {
		now := monotonic()
		f.alive, f.message = living(f.totals.Beats, now)
		f.silence = silent(f.totals.Beats, now)
	}
	file, err := readFile(c.path("fastpath.json"))
	switch {
	case err == nil:
		f.file = file
		if f.totals == nil && !exists(c.path("counters")) {
			f.message = "the file counters is missing in " + c.StateDir + ", without which nobody sees whether lace-fastpath runs: start it if it does not; if it does, make room on the file system of that directory"
		}
	case f.alive && f.message == "":
		f.message = err.Error()
	}
	return f
}

func readTotals(path string) (*counter.Totals, string) {
	r, err := counter.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "lace-fastpath has not run here yet: start it, packets of Services are not carried without it"
	}
	if err != nil {
		return nil, err.Error()
	}
	defer r.Close()
	t := r.Totals()
	return &t, ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// living judges by the workers' signs of life: the process lives as long as one of them
// does; those that do not are named.
func living(beats []int64, now int64) (alive bool, message string) {
	silent, oldest := 0, time.Duration(0)
	for _, beat := range beats {
		age := time.Duration(now - beat)
		if beat == 0 || age > lively {
			silent++
			oldest = max(oldest, age)
		}
	}
	switch {
	case silent == 0:
		return true, ""
	case silent == len(beats):
		return false, "lace-fastpath is not running: start it, and look at its log if it ends again; new connections to Services are not carried without it"
	}
	return true, fmt.Sprintf("%d of %d workers of lace-fastpath stand still, for up to %s: restart it, and report its log", silent, len(beats), oldest.Round(time.Second))
}

// silent is how long ago the last sign of life was; 0: there was none.
func silent(beats []int64, now int64) time.Duration {
	last := int64(0)
	for _, beat := range beats {
		last = max(last, beat)
	}
	if last == 0 {
		return 0
	}
	return time.Duration(now - last)
}

func readFile(path string) (fastpathFile, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return fastpathFile{}, err
	}
	var f fastpathFile
	if err := json.Unmarshal(b, &f); err != nil {
		return fastpathFile{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// kernelCounters reads the counters of the BPF programs; nil when there are none.
func kernelCounters(bpffs string) *xdp.Counters {
	r, err := xdp.OpenCounters(bpffs)
	if err != nil {
		return nil
	}
	defer r.Close()
	c, err := r.Counters()
	if err != nil {
		return nil
	}
	return &c
}

// monotonic is the clock that workers of the fast path sign with.
func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return ts.Nano()
}
