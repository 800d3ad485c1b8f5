package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// sent waits for n frames and returns copies of them.
func sent(t *testing.T, m *port.Memory, n int) (out [][]byte) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		m.Collect(func(b []byte) { out = append(out, slices.Clone(b)) })
		if len(out) >= n {
			return out
		}
		select {
		case <-m.Left():
		case <-deadline:
			t.Fatalf("%d of %d frames left the port", len(out), n)
		}
	}
}

func TestARequestLeavesTranslatedAndIsCounted(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 8)
	n.start(n.worker(0, m))
	m.Deliver(request(4000))
	out := sent(t, m, 1)[0]
	how, id, ok := packet.ReadInject(out)
	if !ok || how != packet.Direct || id != 3 {
		t.Errorf("marked %d, port %d, %v; want direct to port 3", how, id, ok)
	}
	got, err := frame.Decode(out)
	if err != nil || frame.Check(out) != nil {
		t.Fatalf("%v, %v", err, frame.Check(out))
	}
	if got.Dst.String() != "10.244.1.3:8080" {
		t.Errorf("went to %s, want the backend", got.Dst)
	}
	eventually(t, "the packet is counted", func() bool {
		c := n.totals()
		return c.Reasons[reason.NewFlow] == counter.Tally{Packets: 1, Bytes: uint64(len(request(4000)))} &&
			c.Events[counter.Received] == 1 && c.Events[counter.Transmitted] == 1 && c.Events[counter.Recycled] == 0
	})
}

func TestEveryFrameHasOneReasonAndIsSentOrGivenBack(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 512)
	stop := n.start(n.worker(0, m))
	unmarked := frame.UDP("10.244.1.2:1", "10.96.0.10:80", "x").Bytes()
	spoofed := punted(frame.UDP("10.244.1.9:1", "10.96.0.10:80", "x"), 2)
	direct := punted(frame.UDP("10.244.1.2:1", "10.244.1.3:80", "x"), 2)
	for i := range 100 {
		for _, b := range [][]byte{request(uint16(1000 + i)), unmarked, spoofed, direct} {
			if !m.Deliver(b) {
				t.Fatal("no room for a frame")
			}
		}
	}
	sent(t, m, 200)
	eventually(t, "400 frames are counted", func() bool { return n.totals().Events[counter.Received] == 400 })
	stop()
	c := n.totals()
	for why, want := range map[reason.Reason]uint64{
		reason.NewFlow: 100, reason.ForeignFrame: 100, reason.SpoofedSource: 100, reason.NotClaimed: 100,
	} {
		if got := c.Reasons[why].Packets; got != want {
			t.Errorf("%s: %d packets, want %d", why, got, want)
		}
	}
	if c.Events[counter.Strays] != 100 || c.Events[counter.Transmitted] != 200 || c.Events[counter.Recycled] != 200 {
		t.Errorf("strays %d, transmitted %d, recycled %d; want 100, 200, 200",
			c.Events[counter.Strays], c.Events[counter.Transmitted], c.Events[counter.Recycled])
	}
}

func TestWithoutTablesEverythingIsDroppedByName(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 8)
	n.snapshot.Store(nil)
	n.start(n.worker(0, m))
	m.Deliver(request(4000))
	eventually(t, "the drop is counted", func() bool { return n.totals().Reasons[reason.NoSnapshot].Packets == 1 })
}

func TestFramesThatFoundNoRoomAreCounted(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 2)
	w := n.worker(0, m)
	for i := range 5 {
		m.Deliver(request(uint16(1000 + i)))
	}
	stop := n.start(w)
	sent(t, m, 2)
	eventually(t, "three frames are counted as lost", func() bool { return n.totals().Events[counter.Overruns] == 3 })
	stop()
	if got := n.totals().Events[counter.Overruns]; got != 3 {
		t.Errorf("%d at the end, want 3", got)
	}
}

// narrow is a port whose ring takes a few frames until the next Flush.
type narrow struct {
	*port.Memory
	room, left int
}

func (p *narrow) Transmit(batch []port.Frame) int {
	n := p.Memory.Transmit(batch[:min(len(batch), p.left)])
	p.left -= n
	return n
}

func (p *narrow) Flush() error { p.left = p.room; return nil }

func TestWhatTheRingDoesNotTakeIsTriedOnceMoreAndThenDroppedByName(t *testing.T) {
	n := newNode(t, 1)
	p := &narrow{Memory: memory(t, 64), room: 4, left: 4}
	w := n.worker(0, p)
	for i := range 10 {
		p.Deliver(request(uint16(1000 + i)))
	}
	// Everything is there before the worker begins, so that it is one batch.
	stop := n.start(w)
	sent(t, p.Memory, 8)
	stop()
	c := n.totals()
	if c.Reasons[reason.RingFull].Packets != 2 || c.Reasons[reason.NewFlow].Packets != 8 {
		t.Errorf("ring-full %d, new-flow %d; want 2 and 8", c.Reasons[reason.RingFull].Packets, c.Reasons[reason.NewFlow].Packets)
	}
}

// broken is a port that fails in one of its calls.
type broken struct {
	*port.Memory
	wait, flush error
}

func (p *broken) Wait(d time.Duration) error {
	if p.wait != nil {
		return p.wait
	}
	return p.Memory.Wait(d)
}

func (p *broken) Flush() error { return p.flush }

func TestAPortThatFailsEndsTheWorkerWithItsError(t *testing.T) {
	gone := errors.New("the device is gone")
	for _, c := range []struct {
		sentence string
		port     func(*port.Memory) *broken
	}{
		{"while waiting", func(m *port.Memory) *broken { return &broken{Memory: m, wait: gone} }},
		{"while sending", func(m *port.Memory) *broken {
			m.Deliver(request(4000))
			return &broken{Memory: m, flush: gone}
		}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			n := newNode(t, 1)
			w := n.worker(0, c.port(memory(t, 8)))
			if err := w.Run(context.Background()); !errors.Is(err, gone) {
				t.Errorf("Run gives %v, want the port's error", err)
			}
			if err := w.Conserved(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTwoWorkersShareFlows(t *testing.T) {
	n := newNode(t, 2)
	ports := []*port.Memory{memory(t, 1024), memory(t, 1024)}
	for i, m := range ports {
		n.start(n.worker(i, m))
	}
	const flows = 200
	for i := range flows {
		b := request(uint16(1000 + i))
		// The same first packet at both workers at once.
		var both sync.WaitGroup
		for _, m := range ports {
			both.Go(func() { m.Deliver(b) })
		}
		both.Wait()
	}
	for _, m := range ports {
		for _, b := range sent(t, m, flows) {
			if got, err := frame.Decode(b); err != nil || got.Dst.String() != "10.244.1.3:8080" {
				t.Fatalf("went to %v, %v", got.Dst, err)
			}
		}
	}
	if got := n.flows.Len(); got != flows {
		t.Errorf("%d flows, want %d", got, flows)
	}
	// A reply that comes in at the other worker finds its flow.
	ports[1].Deliver(punted(frame.UDP("10.244.1.3:8080", "10.244.1.2:1000", "answer"), 3))
	if got, err := frame.Decode(sent(t, ports[1], 1)[0]); err != nil || got.Src.String() != "10.96.0.10:80" {
		t.Errorf("the reply comes from %v, %v; want the VIP", got.Src, err)
	}
	eventually(t, "every packet has one reason", func() bool {
		c := n.totals()
		return c.Reasons[reason.NewFlow].Packets+c.Reasons[reason.Established].Packets == 2*flows &&
			c.Reasons[reason.Reply].Packets == 1
	})
}

func TestAnIdleWorkerSleepsAndAnswersAtOnce(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 8)
	n.start(n.worker(0, m))
	best := time.Hour
	for i := range 10 {
		waits := n.totals().Events[counter.Waits]
		eventually(t, "the worker waits", func() bool { return n.totals().Events[counter.Waits] > waits })
		start := time.Now()
		m.Deliver(request(uint16(1000 + i)))
		sent(t, m, 1)
		best = min(best, time.Since(start))
	}
	// The best of ten is what the worker adds; the rest is the machine's other load.
	if best > 5*time.Millisecond {
		t.Errorf("the fastest answer took %v", best)
	}
	c := n.totals()
	if c.Events[counter.Pauses] != 0 {
		t.Errorf("paused %d times between single requests", c.Events[counter.Pauses])
	}
}

func TestASleepingWorkerShowsThatItIsAlive(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 8)
	n.start(n.worker(0, m))
	eventually(t, "a first heartbeat", func() bool { return n.totals().Beats[0] != 0 })
	first := n.totals().Beats[0]
	eventually(t, "another heartbeat", func() bool { return n.totals().Beats[0] > first })
	if waits := n.totals().Events[counter.Waits]; waits > 1000 {
		t.Errorf("went to sleep %d times with nothing to do", waits)
	}
}

func TestExpiredFlowsAreCollectedWithoutTraffic(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 8)
	n.snapshot.Store(tables(t, func(c *table.Contents) { c.Settings.Timeouts.UDPNew = 1 }))
	n.start(n.worker(0, m))
	m.Deliver(request(4000))
	sent(t, m, 1)
	eventually(t, "the flow is collected", func() bool { return n.flows.Len() == 0 })
	eventually(t, "and counted", func() bool { return n.totals().Events[counter.Expired] == 1 })
}

func TestASnapshotThatWasSwappedOutIsLetGo(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 64)
	w := n.worker(0, m)
	n.start(w)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := uint16(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				m.Deliver(request(1000 + i%100))
				m.Collect(func([]byte) {})
			}
		}
	}()
	for range 50 {
		next := tables(t, func(*table.Contents) {})
		old := n.snapshot.Swap(next)
		eventually(t, "the worker lets go of the old tables", func() bool { return !w.Uses(old) })
		if w.Uses(old) {
			t.Fatal("the worker came back to the old tables")
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
}

func TestARoundDoesNotAllocate(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 64)
	w := n.worker(0, m)
	b, drop := request(4000), func([]byte) {}
	if got := testing.AllocsPerRun(100, func() {
		for range 10 {
			m.Deliver(b)
		}
		if err := w.round(m.Receive(w.batch[:])); err != nil {
			t.Fatal(err)
		}
		m.Collect(drop)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
