package pipeline

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestPacketsDoNotCostMoreWithMoreServices: the first packet of a flow, and a later one, take
// about as much of the processor beside 20,000 Services as beside 20. Both are measured in
// turns, and the quickest round counts, so that what else the machine does is no matter; a
// walk over Services would be a factor of hundreds.
func TestPacketsDoNotCostMoreWithMoreServices(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	few, many := beside(t, 20), beside(t, 20_000)
	const most = 4
	for _, c := range []struct {
		name  string
		round func(*traffic) int64
	}{
		{"first packets", (*traffic).firsts},
		{"later packets", (*traffic).laters},
	} {
		least := [2]int64{math.MaxInt64, math.MaxInt64}
		for range 15 {
			for i, l := range []*traffic{few, many} {
				least[i] = min(least[i], c.round(l))
			}
		}
		if least[1] > most*least[0] {
			t.Errorf("%s: %d ns for %d of them beside 20,000 Services, %d ns beside 20: more than %d times as much", c.name, least[1], flowsPerRound, least[0], most)
		}
	}
}

const flowsPerRound = 500

// beside is traffic to one Service beside n others.
func beside(t *testing.T, n int) *traffic {
	t.Helper()
	l := newTraffic(t, 4, 4*flowsPerRound, 1)
	for i := range n {
		l.nextID++
		l.services[fmt.Sprint("other ", i)] = &service{frontend: table.Frontend{
			ID: l.nextID, Addr: packet.Addr4([4]byte{10, 200, byte(i >> 8), byte(i)}), Port: 80, Protocol: l.protocol, Generation: 1,
		}}
	}
	l.admit()
	return l
}

// firsts is the processor time of a round of new flows, which are forgotten again.
func (l *traffic) firsts() int64 {
	took := l.packets(reason.NewFlow)
	l.clock += time.Hour
	l.pipeline.Expire(l.snapshot, int64(l.clock), 1<<30)
	return took
}

// laters is that of a second packet of each.
func (l *traffic) laters() int64 {
	l.packets(reason.NewFlow)
	took := l.packets(reason.Established)
	l.clock += time.Hour
	l.pipeline.Expire(l.snapshot, int64(l.clock), 1<<30)
	return took
}

// packets is that of one packet of each flow.
func (l *traffic) packets(want reason.Reason) int64 {
	l.t.Helper()
	start := threadTime(l.t)
	for i := range flowsPerRound {
		l.set(l.frames[0], i)
		if r := l.process(l.frames[0]); r != want {
			l.t.Fatalf("flow %d: reason %s, want %s", i, r, want)
		}
	}
	return threadTime(l.t) - start
}
