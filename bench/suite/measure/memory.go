package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"lace-cni.io/lace/bench/suite/rig"
	"lace-cni.io/lace/fastpath/conntrack"
)

// numbers gives new flows of a rig numbers that were not used lately.
var numbers = struct {
	sync.Mutex
	next map[*rig.Rig]int
}{next: map[*rig.Rig]int{}}

// freshMost is the last number at which new flows may end: that of the flows there are,
// less those that other loads use.
const freshMost = 1<<21 - freshFlows

// next reserves n numbers. They begin again when there are no more: the flows of the first
// round have ended by then.
func (b *bench) next(n int) int {
	numbers.Lock()
	defer numbers.Unlock()
	first := numbers.next[b.Rig]
	if first+n > freshMost {
		first = 0
	}
	numbers.next[b.Rig] = first + n
	return first
}

// halfFull is the load of the table at which Lace is to be run (see conntrack.Reader.Cap).
const halfFull = 2

// sampled flows tell by how much memory grows.
const sampled = 1 << 13

// flowMemory is what a flow costs with the table half full: its share of the table, and what
// the fast path's own memory grew by when new flows came.
func flowMemory(b *bench) (Values, error) {
	before, err := b.private()
	if err != nil {
		return nil, err
	}
	n := min(sampled, b.times.NewFlows)
	v, err := b.newFlows(n)
	if err != nil {
		return nil, err
	}
	after, err := b.private()
	if err != nil {
		return nil, err
	}
	table := float64(conntrack.RoundSlots(b.FlowSlots) * conntrack.SlotSize)
	flows := table / conntrack.SlotSize / 2 / halfFull
	grown := max(0, float64(after-before)) / float64(n)
	return Values{"bytes": table/flows + grown, "grown": grown, "loss": v["loss"]}, nil
}

// private is the memory that the serving processes share with nobody, in bytes.
func (b *bench) private() (sum int64, err error) {
	for _, p := range b.Processes() {
		n, err := anonymous(p)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func anonymous(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no RssAnon", pid)
}
