package conntrack

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
)

// slower scales work down under the race detector.
func slower(n int) int {
	if raceDetector {
		return n / 20
	}
	return n
}

// Several workers meet the first packet of the same tuples at the same time: every packet
// gets a flow, and every tuple one backend, whoever asks.
func TestSimultaneousFirstPackets(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			tuples := slower(1_000_000)
			if workers != 2 {
				tuples /= 10
			}
			table := newTestTable(t, 1<<17)
			round := min(table.Cap()/2, tuples)
			lost, met := 0, 0
			for start := 0; start < tuples; start += round {
				l, m := firstPackets(t, table, workers, start, round)
				lost, met = lost+l, met+m
				timeouts := DefaultTimeouts()
				table.Sweep(1<<30, len(table.slots), &timeouts, nil)
			}
			t.Logf("%d tuples, %d first packets, %d of them met another inside Insert, %d lost", tuples, tuples*workers, met, lost)
			if lost != 0 {
				t.Errorf("%d first packets were lost", lost)
			}
			checked(t, table)
		})
	}
}

// firstPackets returns how many packets got no flow, and how many lost the race to
// another worker between Lookup and Insert.
func firstPackets(t *testing.T, table *Table, workers, start, n int) (lost, met int) {
	chosen := make([][]uint32, workers)
	progress := make([]atomic.Int64, workers)
	var lostAll, metAll atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		chosen[w] = make([]uint32, n)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			var fwd, rev Flow
			for i := range n {
				if i%8 == 0 {
					stayClose(progress, w, i)
				}
				connection(start+i, i&1 != 0, &fwd, &rev)
				decide(&fwd, &rev, uint32(r.IntN(250)+1))
				if !table.Lookup(&fwd.Tuple, &fwd) {
					switch table.Insert(&fwd, &rev, 1) {
					case Inserted:
					case Exists:
						metAll.Add(1)
					default:
						lostAll.Add(1)
					}
				}
				chosen[w][i] = fwd.Backend
			}
			progress[w].Store(int64(n))
		})
	}
	wg.Wait()
	for i := range n {
		for w := range workers {
			if chosen[w][i] != chosen[0][i] {
				t.Fatalf("tuple %d: worker %d forwards to %d, worker 0 to %d", start+i, w, chosen[w][i], chosen[0][i])
			}
		}
	}
	return int(lostAll.Load()), int(metAll.Load())
}

// stayClose waits for the other workers, so that all are at the same tuple at once.
func stayClose(progress []atomic.Int64, w, i int) {
	progress[w].Store(int64(i))
	for o := range progress {
		for progress[o].Load() < int64(i) {
			runtime.Gosched()
		}
	}
}

// decide writes one number into every part of a decision, so that a mixture shows.
func decide(fwd, rev *Flow, backend uint32) {
	b := byte(backend)
	fwd.Backend, rev.Backend = backend, backend
	fwd.Frontend, rev.Frontend = backend, backend
	fwd.Rewrite.Dst[15], rev.Src[15] = b, b
	fwd.Rewrite.DstPort, rev.SrcPort = uint16(backend), uint16(backend)
	fwd.Rewrite.L3, fwd.Rewrite.L4 = uint16(backend), uint16(backend)
	fwd.Target, rev.Target = uint16(backend), uint16(backend)
	fwd.Stamp = Stamp{uint16(backend), uint16(backend), uint16(backend)}
	rev.Stamp = fwd.Stamp
}

// torn reports a decision that is not one.
func torn(f *Flow) bool {
	b := f.Backend
	if f.Frontend != b || uint32(f.Target) != b || f.Stamp != (Stamp{uint16(b), uint16(b), uint16(b)}) {
		return true
	}
	if f.Flags&FlagReply != 0 {
		return f.Src[15] != byte(b) || uint32(f.SrcPort) != b
	}
	return f.Rewrite.Dst[15] != byte(b) || uint32(f.Rewrite.DstPort) != b || uint32(f.Rewrite.L3) != b || uint32(f.Rewrite.L4) != b
}

// stressor lets workers do everything at once to few flows.
type stressor struct {
	table            *Table
	stop             atomic.Bool
	reads, torn      atomic.Int64
	orphans, touched atomic.Int64
}

func TestEverythingAtOnce(t *testing.T) {
	// Small: collisions and full buckets; large: many slots.
	for _, slots := range []int{32, 512} {
		s := &stressor{table: newTestTable(t, slots)}
		s.table.SetHalfOpenMax(s.table.Cap() / 3)
		var wg sync.WaitGroup
		for w := range 3 {
			wg.Go(func() { s.write(rand.New(rand.NewPCG(uint64(w), 7))) })
		}
		for w := range 2 {
			wg.Go(func() { s.read(rand.New(rand.NewPCG(uint64(w), 8))) })
		}
		wg.Go(s.sweep)
		deadline := time.Now().Add(20 * time.Second)
		for target := int64(slower(400_000)); s.reads.Load() < target && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		s.stop.Store(true)
		wg.Wait()
		t.Logf("slots=%d: %d consistent reads, %d touches, %d evictions, %d pairs seen parting", slots, s.reads.Load(), s.touched.Load(), s.table.HalfOpenEvicted(), s.orphans.Load())
		if s.torn.Load() != 0 {
			t.Errorf("slots=%d: %d reads mixed two decisions", slots, s.torn.Load())
		}
		if s.reads.Load() == 0 || s.touched.Load() == 0 {
			t.Errorf("slots=%d: nothing was read", slots)
		}
		checked(t, s.table)
	}
}

func (s *stressor) random(r *rand.Rand) (fwd, rev Flow) {
	n := r.IntN(s.table.Cap() * 2)
	connection(n, n&1 != 0, &fwd, &rev)
	if n&2 != 0 {
		fwd.Protocol, rev.Protocol = packet.ProtocolTCP, packet.ProtocolTCP
	}
	decide(&fwd, &rev, uint32(1+r.IntN(250)))
	return fwd, rev
}

func (s *stressor) write(r *rand.Rand) {
	for now := uint32(0); !s.stop.Load(); now++ {
		fwd, rev := s.random(r)
		switch s.table.Insert(&fwd, &rev, now) {
		case Exists:
			again, againRev := s.random(r)
			again.Tuple = fwd.Tuple
			againRev.Dst, againRev.DstPort, againRev.Protocol = fwd.Src, fwd.SrcPort, fwd.Protocol
			if r.IntN(2) == 0 {
				s.table.Replace(&fwd, &again, &againRev, now)
			} else {
				s.table.Delete(&fwd)
			}
		case Inserted:
			s.table.SetMode(&fwd, ModeLane)
			s.table.Restamp(&rev, rev.Stamp, rev.Target)
		}
	}
}

func (s *stressor) read(r *rand.Rand) {
	var f, peer Flow
	for now := uint32(0); !s.stop.Load(); now++ {
		fwd, _ := s.random(r)
		if !s.table.Lookup(&fwd.Tuple, &f) {
			continue
		}
		s.reads.Add(1)
		if torn(&f) || f.Tuple != fwd.Tuple {
			s.torn.Add(1)
		}
		if !s.table.Peer(&f, &peer) {
			s.orphans.Add(1) // ended in between
		} else if torn(&peer) || peer.Backend != f.Backend || peer.Flags&FlagReply == f.Flags&FlagReply {
			s.torn.Add(1)
		}
		if s.table.Touch(&f, State(1<<r.IntN(5)), now) {
			s.touched.Add(1)
		}
	}
}

func (s *stressor) sweep() {
	timeouts := Timeouts{TCPHalfOpen: 1 << TickShift, UDPNew: 1 << TickShift}
	for now := uint32(0); !s.stop.Load(); now++ {
		s.table.Sweep(now, 16, &timeouts, func(f *Flow) bool {
			if torn(f) {
				s.torn.Add(1)
			}
			return f.Backend == 77
		})
		s.table.SetHalfOpenMax(s.table.Cap()/3 + int(now)%2)
		s.table.HalfOpen()
	}
}
