package worker

import (
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// fragments of a datagram from the client to the VIP, as they come on the trunk.
func fragments(sourcePort uint16, bytes, mtu int) (all [][]byte) {
	f := frame.UDP("10.244.1.2:1", "10.96.0.10:80", strings.Repeat("x", bytes))
	for _, b := range frame.Cut(withSource(f, sourcePort).Bytes(), uint32(sourcePort), mtu) {
		packet.WritePunt(b, packet.Punt{Port: 2})
		all = append(all, b)
	}
	return all
}

// rounds lets the worker settle everything that was delivered.
func rounds(t *testing.T, w *Worker, p port.Port) {
	t.Helper()
	for n := p.Receive(w.batch[:]); n > 0; n = p.Receive(w.batch[:]) {
		if err := w.round(n); err != nil {
			t.Fatal(err)
		}
	}
}

// whole puts what left together and checks that it is one datagram to the backend.
func whole(t *testing.T, frames [][]byte) {
	t.Helper()
	var parts []frame.Part
	for _, b := range frames {
		p, err := frame.ReadPart(b)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	joined, err := frame.Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := frame.Decode(joined); err != nil || frame.Check(joined) != nil || got.Dst.String() != "10.244.1.3:8080" {
		t.Errorf("%s, %v, %v: want a datagram to the backend", got.Dst, err, frame.Check(joined))
	}
}

// Fragments that waited leave in frames of their own; more of them than a batch holds are sent
// in between.
func TestFragmentsThatWaitedAreSent(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 256)
	w := n.worker(0, m)
	all := fragments(4000, 100*480, 500)
	for _, b := range all[1:] {
		m.Deliver(b)
	}
	rounds(t, w, m)
	if got := m.Collect(func([]byte) {}); got != 0 {
		t.Errorf("%d frames left before the first fragment came", got)
	}
	if got := w.counters.Event(counter.Held); got != uint64(len(all)-1) {
		t.Errorf("%d held, want %d", got, len(all)-1)
	}
	m.Deliver(all[0])
	rounds(t, w, m)
	whole(t, sent(t, m, len(all)))
	if got := w.counters.Event(counter.Taken); got != uint64(len(all)-1) {
		t.Errorf("%d frames taken, want %d", got, len(all)-1)
	}
	if a, b := w.counters.Packets(reason.NewFlow), w.counters.Packets(reason.Established); a != 1 || b != uint64(len(all)-1) {
		t.Errorf("new-flow %d, established %d; want 1 and %d", a, b, len(all)-1)
	}
	if err := w.Conserved(); err != nil {
		t.Error(err)
	}
}

// A packet that is cut leaves in frames of its own, too, with the first one in front.
func TestAPacketThatIsCutIsSent(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 16)
	n.snapshot.Store(tables(t, func(c *table.Contents) {
		for i := range c.Ports {
			c.Ports[i].MTU = 1000
		}
	}))
	w := n.worker(0, m)
	m.Deliver(punted(withSource(frame.UDP("10.244.1.2:1", "10.96.0.10:80", strings.Repeat("x", 1900)), 4000), 2))
	rounds(t, w, m)
	out := sent(t, m, 2)
	whole(t, out)
	if len(out) != 2 || w.counters.Packets(reason.NewFlow) != 1 || w.counters.Packets(reason.Cut) != 1 {
		t.Errorf("%d frames, new-flow %d, cut %d; want 2, 1 and 1", len(out), w.counters.Packets(reason.NewFlow), w.counters.Packets(reason.Cut))
	}
	if err := w.Conserved(); err != nil {
		t.Error(err)
	}
}

// Without free frames what waited is dropped by name, and its memory is free again.
func TestFragmentsWithoutFramesAreDroppedByName(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 4)
	w := n.worker(0, m)
	all := fragments(4000, 5*480, 500)
	for _, b := range all[1:] {
		m.Deliver(b)
		rounds(t, w, m)
	}
	for m.Deliver(all[0]) { // until no frame is free
	}
	rounds(t, w, m)
	w.pipeline.Lost(Now(), w.lost)
	if got := w.counters.Packets(reason.RingFull); got != uint64(len(all)-1) {
		t.Errorf("ring-full %d, want %d that waited", got, len(all)-1)
	}
	if err := w.Conserved(); err != nil {
		t.Error(err)
	}
	m.Collect(func([]byte) {})
	for _, b := range fragments(4001, 2*480, 500) {
		m.Deliver(b)
	}
	rounds(t, w, m)
	whole(t, sent(t, m, 3))
}

func TestSendingWhatWaitedDoesNotAllocate(t *testing.T) {
	n, m := newNode(t, 1), memory(t, 64)
	w := n.worker(0, m)
	all, drop := fragments(4000, 5*480, 500), func([]byte) {}
	if got := testing.AllocsPerRun(100, func() {
		for i := range all {
			m.Deliver(all[len(all)-1-i])
		}
		if err := w.round(m.Receive(w.batch[:])); err != nil {
			t.Fatal(err)
		}
		m.Collect(drop)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
	if w.counters.Packets(reason.FragmentDuplicate) != 0 {
		t.Error("a datagram was not forgotten with its last fragment")
	}
}

func withSource(f frame.Frame, port uint16) frame.Frame {
	f.Src = netip.AddrPortFrom(f.Src.Addr(), port)
	return f
}
