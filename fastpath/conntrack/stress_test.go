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
			round := min(table.Cap()/4, tuples) // a load at which nothing is refused
			met := 0
			for start := 0; start < tuples; start += round {
				met += firstPackets(t, table, workers, start, round)
				timeouts := DefaultTimeouts()
				table.Sweep(1<<30, len(table.slots), &timeouts, nil)
			}
			t.Logf("%d tuples, %d first packets, %d of them met another inside Insert", tuples, tuples*workers, met)
			checked(t, table)
		})
	}
}

// firstPackets returns how many packets lost the race to another worker between Lookup
// and Insert.
func firstPackets(t *testing.T, table *Table, workers, start, n int) int {
	chosen := make([][]uint32, workers)
	progress := make([]atomic.Int64, workers)
	var met atomic.Int64
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
					switch result := table.Insert(&fwd, &rev, 1); result {
					case Inserted:
					case Exists:
						met.Add(1)
					default:
						t.Errorf("worker %d lost the first packet of tuple %d: %v", w, start+i, result)
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
	return int(met.Load())
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
	fwd.Rewrite.L3 = uint16(backend)
	fwd.Target, rev.Target = uint16(backend), uint16(backend)
	fwd.In, rev.In = uint16(backend), uint16(backend)
	fwd.Stamp = Stamp{uint16(backend), uint16(backend), uint16(backend)}
	rev.Stamp = fwd.Stamp
}

// torn reports a decision that is not one.
func torn(f *Flow) bool {
	b := f.Backend
	if f.Frontend != b || uint32(f.Target) != b || uint32(f.In) != b || f.Stamp != (Stamp{uint16(b), uint16(b), uint16(b)}) {
		return true
	}
	if f.Flags&FlagReply != 0 {
		return f.Src[15] != byte(b) || uint32(f.SrcPort) != b
	}
	return f.Rewrite.Dst[15] != byte(b) || uint32(f.Rewrite.DstPort) != b || uint32(f.Rewrite.L3) != b || f.Rewrite.L4 != l4Difference(f)
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
			s.table.InstallPair(&fwd)
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

// A reader that copies while a writer re-decides, over and over, sees one decision or the
// other, or none when the writer lost the processor inside.
func TestReadsAreNeverTorn(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		table := newTestTable(t, 64)
		var fwd, rev Flow
		connection(1, v6, &fwd, &rev)
		decide(&fwd, &rev, 1)
		mustInsert(t, table, &fwd, &rev, 1)
		tuple := fwd.Tuple
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := uint32(0); !stop.Load(); i++ {
				var next, nextRev Flow
				connection(1, v6, &next, &nextRev)
				decide(&next, &nextRev, 1+i%2*0xaa)
				if r := table.Replace(&fwd, &next, &nextRev, i); r != Inserted {
					t.Errorf("Replace is %v", r)
					return
				}
				fwd = next
			}
		})
		mixed, missed, seen := 0, 0, map[uint32]int{}
		for range slower(1_000_000) {
			var f, peer Flow
			if !table.Lookup(&tuple, &f) {
				missed++
				continue
			}
			seen[f.Backend]++
			if torn(&f) || table.Peer(&f, &peer) && (torn(&peer) || peer.Backend != f.Backend) {
				mixed++
			}
		}
		stop.Store(true)
		wg.Wait()
		t.Logf("IPv6 %v: backends seen %v, %d reads gave up", v6, seen, missed)
		if mixed != 0 || len(seen) != 2 {
			t.Errorf("IPv6 %v: %d reads mixed decisions, backends seen %v; want both", v6, mixed, seen)
		}
		checked(t, table)
	}
}

// Two workers end or re-decide the same flow at the same moment: one succeeds.
func TestRivals(t *testing.T) {
	table := newTestTable(t, 64)
	remove := func(f Flow, _ uint32) bool { return table.Delete(&f) }
	replace := func(f Flow, backend uint32) bool {
		var fwd, rev Flow
		connection(1, true, &fwd, &rev)
		decide(&fwd, &rev, backend)
		return table.Replace(&f, &fwd, &rev, 2) == Inserted
	}
	for _, c := range []struct {
		name string
		act  [2]func(Flow, uint32) bool
	}{
		{"two deletes", [2]func(Flow, uint32) bool{remove, remove}},
		{"delete and replace", [2]func(Flow, uint32) bool{remove, replace}},
		{"two replaces", [2]func(Flow, uint32) bool{replace, replace}},
	} {
		for round := range slower(40_000) {
			var fwd, rev Flow
			connection(1, true, &fwd, &rev)
			decide(&fwd, &rev, 1)
			mustInsert(t, table, &fwd, &rev, 1)
			if n := atOnce(func(w int) bool { return c.act[w](fwd, uint32(2+w)) }); n != 1 {
				t.Fatalf("%s: round %d: %d of 2 succeeded", c.name, round, n)
			}
			checked(t, table)
			if table.Lookup(&fwd.Tuple, &fwd) {
				table.Delete(&fwd)
			}
			if table.Len() != 0 {
				t.Fatalf("%s: round %d: %d flows are left", c.name, round, table.Len())
			}
		}
	}
}

// Two clients' flows that would have one reply tuple: one gets it, the other hears so.
func TestRivalsForAReplyTuple(t *testing.T) {
	table := newTestTable(t, 64)
	for round := range slower(40_000) {
		var flows [2]Flow
		n := atOnce(func(w int) bool {
			var rev Flow
			connection(1, false, &flows[w], &rev)
			flows[w].Dst[15] = byte(w) // two VIPs of one backend
			result := table.Insert(&flows[w], &rev, 1)
			if result != Inserted && result != Clash {
				t.Errorf("round %d: Insert is %v", round, result)
			}
			return result == Inserted
		})
		if n != 1 {
			t.Fatalf("round %d: %d of 2 got the reply tuple", round, n)
		}
		checked(t, table)
		for w := range flows {
			table.Delete(&flows[w])
		}
	}
}

// Two workers note packets of one direction at the same moment: neither note is lost.
func TestRivalsTouch(t *testing.T) {
	table := newTestTable(t, 64)
	for round := range slower(40_000) {
		var fwd, rev, got Flow
		connection(1, false, &fwd, &rev)
		mustInsert(t, table, &fwd, &rev, 1)
		n := atOnce(func(w int) bool {
			f := fwd
			return table.Touch(&f, [2]State{StateSYN, StateFIN}[w], uint32(2+w))
		})
		table.Lookup(&fwd.Tuple, &got)
		if n != 2 || got.State != StateSYN|StateFIN || got.LastSeen != 3 {
			t.Fatalf("round %d: %d of 2 succeeded, state is %#x seen at %d", round, n, got.State, got.LastSeen)
		}
		table.Delete(&fwd)
	}
}

// atOnce calls do(0) and do(1) together and counts how many succeed.
func atOnce(do func(w int) bool) (n int) {
	var ready atomic.Int32
	results := make(chan bool, 1)
	begin := func() {
		ready.Add(1)
		for ready.Load() < 2 {
			runtime.Gosched()
		}
	}
	go func() {
		begin()
		results <- do(1)
	}()
	begin()
	if do(0) {
		n++
	}
	if <-results {
		n++
	}
	return n
}
