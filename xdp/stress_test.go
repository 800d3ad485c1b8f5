package xdp

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// tally and work are the records of xdp/bpf/stress/stress.c.
type tally struct{ Hits, Misses, Torn, Wrong uint64 }

func (t tally) lookUps() uint64 { return t.Hits + t.Misses + t.Torn }

type work struct {
	Random    uint64
	_         uint64
	_         tally
	Clients   uint32
	Unchecked uint32
}

const stressClients = 128 // in a table of 256 slots, so that slots are reused at once

// stressor is the program that looks up, and the writer that it looks up behind.
type stressor struct {
	*node
	program *ebpf.Program
	tally   *ebpf.Map
	stop    atomic.Bool
	writes  uint64
	strays  int // notes on flows that were never noted
}

func newStressor(t *testing.T, unchecked uint32) *stressor {
	t.Helper()
	o, err := Open(Config{BPFFS: mountBPF(t), FlowSlots: 256})
	must(t, err)
	t.Cleanup(func() { o.Close() })
	s := &stressor{node: newNode(t, o)}
	s.program, s.tally = loadStress(t, o, work{Random: rand.Uint64(), Clients: stressClients, Unchecked: unchecked})
	return s
}

// look looks up that many times and returns what was found since the beginning.
func (s *stressor) look(t *testing.T, times uint32) (sum tally) {
	t.Helper()
	opts := ebpf.RunOptions{Data: make([]byte, 64), Context: skb{Mark: times}}
	_, err := s.program.Run(&opts)
	must(t, err)
	must(t, s.tally.Lookup(uint32(0), &sum))
	return sum
}

// addressOf is an address of these words, as they lie in packets.
func addressOf(words ...uint32) (a packet.Addr) {
	for i, w := range words {
		binary.LittleEndian.PutUint32(a[4*i:], w)
	}
	return a
}

// decideBy makes the client's flow, every word of which follows from n.
func decideBy(client, n uint32) (fwd, rev conntrack.Flow) {
	const vip, v4Mapped = 0x0100600a, 0xffff0000
	x, y, z := n*0x9e3779b1^client, n*0x85ebca6b^client, n*0xc2b2ae35^client
	fwd.Tuple = conntrack.Tuple{SrcPort: 0x0fa0, DstPort: 0x0050, Protocol: packet.ProtocolUDP}
	if client&1 == 1 {
		fwd.Src, fwd.Dst = addressOf(0xfd, client*3, 0, client), addressOf(0xfd, 0, 0x96, vip)
		fwd.Rewrite.Src = addressOf(x|1, (x+1)|1, (x+2)|1, x)
		fwd.Rewrite.Dst = addressOf(z|1, (z+1)|1, (z+2)|1, y)
	} else {
		fwd.Src, fwd.Dst = addressOf(0, 0, v4Mapped, client), addressOf(0, 0, v4Mapped, vip)
		fwd.Rewrite.Src, fwd.Rewrite.Dst = addressOf(0, 0, v4Mapped, x), addressOf(0, 0, v4Mapped, y)
	}
	fwd.Rewrite.SrcPort, fwd.Rewrite.DstPort = bits.ReverseBytes16(uint16(z)), bits.ReverseBytes16(uint16(z>>16))
	fwd.Rewrite.L3, fwd.In = uint16(x+1), uint16(y+1)
	fwd.Frontend, fwd.Backend = n, x^y
	fwd.Target = uint16(z)
	fwd.Stamp = conntrack.Stamp{Frontend: uint16(z >> 16), Backend: uint16(y), Target: uint16(y >> 16)}
	fwd.Mode = conntrack.ModeLane
	rev.Tuple = conntrack.Tuple{
		Src: fwd.Rewrite.Dst, Dst: fwd.Rewrite.Src, SrcPort: fwd.Rewrite.DstPort, DstPort: fwd.Rewrite.SrcPort,
		Protocol: packet.ProtocolUDP,
	}
	rev.Rewrite = conntrack.Rewrite{Src: fwd.Dst, Dst: fwd.Src, SrcPort: fwd.DstPort, DstPort: fwd.SrcPort}
	return fwd, rev
}

// write ends, begins and replaces flows until it is stopped, two in three of the clients
// having one.
func (s *stressor) write() {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for !s.stop.Load() {
		client := r.Uint32N(stressClients)
		fwd, rev := decideBy(client, r.Uint32())
		var old conntrack.Flow
		s.writes++
		if !s.flows.Lookup(&fwd.Tuple, &old) {
			s.flows.Insert(&fwd, &rev, 1)
			continue
		}
		if client&2 != 0 && old.State&conntrack.StateFIN != 0 {
			s.strays++
		}
		if r.IntN(2) == 0 {
			s.flows.Delete(&old)
		} else {
			s.flows.Replace(&old, &fwd, &rev, 1)
		}
	}
}

// run looks up until enough says so, but not longer than patience.
func (s *stressor) run(t *testing.T, longest time.Duration, enough func(tally) bool) (sum tally) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.write()
	}()
	for end := time.Now().Add(longest); time.Now().Before(end) && !enough(sum); {
		sum = s.look(t, 200_000)
		runtime.Gosched() // one processor may have to serve both
	}
	s.stop.Store(true)
	<-done
	return sum
}

// TestLaneStress: while Go ends flows and reuses their slots, no look-up of the lane ever
// mixes two decisions, and no note of the lane reaches a flow that took the slot. Set
// LACE_LONG_TESTS=1 for 10^8 look-ups.
func TestLaneStress(t *testing.T) {
	for name, weakOrder := range map[string]uint32{"as this processor needs": weakOrder, "with barriers": 1} {
		t.Run(name, func(t *testing.T) {
			s := newStressor(t, 0)
			k := s.o.settings
			k.WeakOrder = weakOrder
			must(t, s.o.set(k))
			least, longest := uint64(2_000_000), 10*time.Second
			if os.Getenv("LACE_LONG_TESTS") == "1" {
				least, longest = 100_000_000, 10*time.Minute
			}
			sum := s.run(t, longest, func(c tally) bool { return c.lookUps() >= least && c.Torn > 0 })
			t.Logf("%d look-ups beside %d writes: %+v", sum.lookUps(), s.writes, sum)
			if sum.Wrong != 0 || s.strays != 0 {
				t.Errorf("%d look-ups mixed two decisions, %d notes reached another flow", sum.Wrong, s.strays)
			}
			if sum.Hits == 0 || sum.lookUps() < least {
				t.Errorf("%d look-ups, %d hits: the test proves nothing", sum.lookUps(), sum.Hits)
			}
		})
	}
}

// TestLaneStressFinds: the same test finds mixed decisions where the sequence is not looked at.
func TestLaneStressFinds(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("one processor: nobody reads while another writes")
	}
	s := newStressor(t, 1)
	sum := s.run(t, time.Minute, func(c tally) bool { return c.Wrong > 0 })
	t.Logf("%d look-ups beside %d writes: %+v", sum.lookUps(), s.writes, sum)
	if sum.Wrong == 0 {
		t.Error("no mixed decision was found: the test of the lane could not find one either")
	}
}
