package pipeline

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// slotsPerFlow puts a table at the recommended load of one half.
const slotsPerFlow = 4

// traffic is frames of so many flows of a node, each in memory of its own, as a worker
// finds them in its port.
type traffic struct {
	*world
	frames [][]byte
	raw    []byte
	src    int // offset of the source port; the source address lies before it
}

const (
	frameRoom  = 128
	clientPort = 2
)

// newTraffic makes n frames of n flows from pods behind the client's port.
func newTraffic(b testing.TB, family, n, frames int) *traffic {
	b.Helper()
	w := newWorld(b, family, packet.ProtocolUDP)
	flows, err := conntrack.New(n*slotsPerFlow + 1)
	if err != nil {
		b.Fatal(err)
	}
	w.flows, w.pipeline = flows, New(Config{Flows: flows, Rand: rand.New(rand.NewPCG(1, 2))})
	w.serve("vip", "web:8080", "other:8080", "remote:8080")
	f := frame.UDP(w.endpoint("client:1").String(), w.endpoint("vip:80").String(), "0123456789abcdef01")
	l := &traffic{world: w, raw: f.Bytes(), src: 34}
	if family == 6 {
		l.src = 54
	}
	block := make([]byte, frames*frameRoom)
	for i := range frames {
		l.frames = append(l.frames, block[i*frameRoom:i*frameRoom+len(l.raw):(i+1)*frameRoom])
	}
	return l
}

// set writes the frame of flow i into b: another source port, then another VIP's port.
// Only ports differ, so the checksum need not be right: it is updated all the same.
func (l *traffic) set(b []byte, i int) {
	copy(b, l.raw)
	binary.BigEndian.PutUint16(b[l.src:], uint16(i))
	if l.family == 4 {
		binary.BigEndian.PutUint16(b[26:], uint16(i>>16)+0x0af4) // second half stays
		return
	}
	binary.BigEndian.PutUint16(b[22:], uint16(i>>16)+0xfd00)
}

func (l *traffic) process(b []byte) reason.Reason {
	return l.pipeline.Process(l.snapshot, b, packet.Punt{Port: clientPort}, int64(l.clock), nil).Reason
}

// BenchmarkEstablished: parse, look up, rewrite with checksums, mark for the trunk, for
// packets of so many flows in random order. The frame is restored each time, which is
// part of the figure: 60 bytes, some 2 ns.
func BenchmarkEstablished(b *testing.B) {
	for _, family := range []int{4, 6} {
		for _, n := range []int{1, 4_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("v%d/flows=%d", family, n), func(b *testing.B) {
				// Frames lie in the cache, as those of a ring that is in use do.
				l := newTraffic(b, family, n, 64)
				l.admit()
				order := make([]int32, 0, n)
				for i := range n {
					l.set(l.frames[0], i)
					if r := l.process(l.frames[0]); r != reason.NewFlow {
						b.Fatalf("flow %d: reason %s", i, r)
					}
					order = append(order, int32(i))
				}
				rand.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
				b.ReportAllocs()
				defer measure(b)()
				for i := 0; b.Loop(); i++ {
					f := l.frames[i&63]
					l.set(f, int(order[i%n]))
					if r := l.process(f); r != reason.Established {
						b.Fatalf("reason %s", r)
					}
				}
			})
		}
	}
}

// admit lets the client's port be the home of every source that set writes.
func (l *traffic) admit() {
	for i := range uint16(32) {
		a := l.addr("client").As16()
		at := 12
		if l.family == 6 {
			at = 0
			binary.BigEndian.PutUint16(a[at:], 0xfd00+i)
		} else {
			binary.BigEndian.PutUint16(a[at:], 0x0af4+i)
		}
		if i > 0 {
			l.contents.Addresses = append(l.contents.Addresses, table.Address{Addr: a, Port: portIDs["client"]})
		}
	}
	l.publish()
}

// BenchmarkNewFlow: a backend is chosen and both directions are registered, in a table
// that grows from empty to half full and is then emptied again (not counted).
func BenchmarkNewFlow(b *testing.B) {
	const n = 1_000_000
	l := newTraffic(b, 4, n, 64)
	l.admit()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i == n {
			b.StopTimer()
			l.clock += time.Hour
			l.pipeline.Expire(l.snapshot, int64(l.clock), 1<<30)
			i = 0
			b.StartTimer()
		}
		f := l.frames[i&63]
		l.set(f, i)
		if r := l.process(f); r != reason.NewFlow {
			b.Fatalf("flow %d: reason %s", i, r)
		}
		i++
	}
}

// BenchmarkRefused: a datagram is answered with a port unreachable.
func BenchmarkRefused(b *testing.B) {
	l := newTraffic(b, 4, 1, 1)
	l.contents.Settings.AnswersPerSecond = 1 << 31
	l.serve("vip")
	l.publish()
	b.ReportAllocs()
	for b.Loop() {
		l.clock++
		l.set(l.frames[0], 1)
		if r := l.process(l.frames[0]); r != reason.NoEndpoints {
			b.Fatalf("reason %s", r)
		}
	}
}

// measure reports the processor time per operation, which other load on the machine
// disturbs less than the time that passes.
func measure(b *testing.B) func() {
	runtime.LockOSThread()
	start := threadTime(b)
	return func() {
		b.ReportMetric(float64(threadTime(b)-start)/float64(b.N), "cpu-ns/op")
		runtime.UnlockOSThread()
	}
}

func threadTime(b testing.TB) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return ts.Nano()
}

// BenchmarkNewFlowOfFlood: the same, of a port that has all that it may have unanswered, so
// that older flows of its own give way.
func BenchmarkNewFlowOfFlood(b *testing.B) {
	l := newTraffic(b, 4, 1<<17, 64)
	l.flows.SharePorts()
	l.admit()
	i := 0
	next := func() reason.Reason {
		f := l.frames[i&63]
		l.set(f, i&(1<<20-1))
		l.clock += 4 * time.Microsecond
		i++
		return l.process(f)
	}
	for l.flows.UnansweredEvicted() < 1000 {
		if r := next(); r != reason.NewFlow {
			b.Fatalf("flow %d: reason %s", i, r)
		}
	}
	b.ReportAllocs()
	defer measure(b)()
	for b.Loop() {
		if r := next(); r != reason.NewFlow {
			b.Fatalf("flow %d: reason %s", i, r)
		}
	}
}
