package conntrack

import (
	"fmt"
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

// service is a VIP in one network whose clients and backends are numbered.
type service struct {
	network  packet.NetworkID
	protocol uint8
	v6       bool
}

var (
	tcp4 = service{0, packet.ProtocolTCP, false}
	tcp6 = service{7, packet.ProtocolTCP, true}
	udp4 = service{0, packet.ProtocolUDP, false}
	udp6 = service{packet.MaxNetworkID, packet.ProtocolUDP, true}
)

// connect makes both directions of client port's flow to a backend.
func (s service) connect(client int, port uint16, backend int) (fwd, rev *Flow) {
	c, v, b := addr(fmt.Sprintf("10.1.%d.%d", client>>8, client&255)), addr("10.96.0.1"), addr(fmt.Sprintf("10.244.0.%d", backend))
	if s.v6 {
		c, v, b = addr(fmt.Sprintf("fd00:1:2:3:4:5:6:%x", client)), addr("fd00:96::1"), addr(fmt.Sprintf("fd00:244:a:b:c:d:e:%x", backend))
	}
	fwd = &Flow{
		Tuple:    Tuple{Src: c, Dst: v, SrcPort: port, DstPort: 80, Network: s.network, Protocol: s.protocol},
		Rewrite:  Rewrite{Src: c, Dst: b, SrcPort: port, DstPort: 8080, L3: 0x1234},
		Frontend: 3, Backend: uint32(backend), In: 9, Target: 5, Stamp: Stamp{1, 2, 3}, State: StateSeen,
	}
	rev = &Flow{
		Tuple:    Tuple{Src: b, Dst: c, SrcPort: 8080, DstPort: port, Network: s.network, Protocol: s.protocol},
		Rewrite:  Rewrite{Src: v, Dst: c, SrcPort: 80, DstPort: port, L3: 0x4321},
		Frontend: 3, Backend: uint32(backend), In: 5, Target: 9, Stamp: Stamp{4, 5, 6},
	}
	if s.protocol == packet.ProtocolTCP {
		fwd.State |= StateSYN
	}
	fwd.Rewrite.L4, rev.Rewrite.L4 = l4Difference(fwd), l4Difference(rev)
	return fwd, rev
}

// l4Difference is what Rewrite.L4 has to be, in the arithmetic of remainders: words of a
// packet are little-endian here, and a difference of nothing is ffff.
func l4Difference(f *Flow) uint16 {
	word := func(port uint16) int { return int(port>>8 | port<<8) }
	r := &f.Rewrite
	d := (int(r.L3) + word(r.SrcPort) - word(f.SrcPort) + word(r.DstPort) - word(f.DstPort)) % 0xffff
	if d <= 0 {
		d += 0xffff
	}
	return uint16(d)
}

func newTestTable(t testing.TB, slots int) *Table {
	t.Helper()
	table, err := New(slots)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func mustInsert(t testing.TB, table *Table, fwd, rev *Flow, now uint32) {
	t.Helper()
	if r := table.Insert(fwd, rev, now); r != Inserted {
		t.Fatalf("Insert(%v) = %v, want inserted", fwd.Tuple, r)
	}
}

// checked fails the test when the table breaks one of its own rules.
func checked(t testing.TB, table *Table) {
	t.Helper()
	if err := table.verify(); err != nil {
		t.Fatal(err)
	}
}

// verify looks at every slot of a table at rest.
func (t *Table) verify() error {
	holds := make([]holding, t.Buckets())
	used, halfOpen, unanswered := 0, 0, 0
	ports := map[uint16]int{}
	for n := uint32(1); int(n) < len(t.slots); n++ {
		s := &t.slots[n]
		if s.seq.Load()&1 != 0 {
			return fmt.Errorf("slot %d is being written", n)
		}
		var im image
		if !im.read(s) {
			continue
		}
		used++
		if !t.sound(n, &im) {
			return fmt.Errorf("slot %d is not sound: %+v", n, im)
		}
		if !t.paired(n, &im) {
			return fmt.Errorf("slot %d is not paired: %+v", n, im)
		}
		var f, g Flow
		im.flow(n, &f)
		if !t.Lookup(&f.Tuple, &g) || f != g {
			return fmt.Errorf("slot %d holds %+v, its tuple finds %+v", n, f, g)
		}
		h := t.homesOf(&im.key)
		holds[bucketOf(n)].tags |= uint64(h.tag) << (8 * placeOf(n))
		if b := bucketOf(n); b != h.near {
			holds[h.near].spill++
			if b != h.first {
				holds[h.first].overflow++
			}
		}
		if im.reply() {
			continue
		}
		ports[f.In%portIds]++
		w := node{slot: n, incarnation: f.incarnation, created: s.created.Load()}
		switch tcp := f.Protocol == packet.ProtocolTCP; {
		case tcp && t.halfOpen(w):
			halfOpen++
		case !tcp && t.silent(w):
			unanswered++
		}
	}
	for b, want := range holds {
		if got := (holding{t.records[b].tags.Load(), t.records[b].overflow.Load(), t.records[b].spill.Load()}); got != want {
			return fmt.Errorf("bucket %d has the record %+x, its slots say %+x", b, got, want)
		}
	}
	if used != 2*t.Len() {
		return fmt.Errorf("%d slots in use, Len is %d", used, t.Len())
	}
	for port := range uint16(portIds) {
		if got := t.shares.of(port); got != ports[port] {
			return fmt.Errorf("port %d has %d flows, counted %d", port, ports[port], got)
		}
	}
	if err := t.half.verify(halfOpen); err != nil {
		return fmt.Errorf("half-open: %w", err)
	}
	if !t.shares.inForce {
		unanswered = 0 // the bound is not in force
	}
	if err := t.unanswered.verify(unanswered); err != nil {
		return fmt.Errorf("unanswered: %w", err)
	}
	return nil
}

func (q *queue) verify(waiting int) error {
	total := 0
	for port := range q.lists {
		l := &q.lists[port]
		length, prev := 0, uint32(0)
		for i := l.oldest; i != 0 && length <= q.max(); i = q.nodes[i].next {
			if q.nodes[i].prev != prev {
				return fmt.Errorf("entry %d points back to %d, not %d", i, q.nodes[i].prev, prev)
			}
			if q.list(q.nodes[i].port) != l {
				return fmt.Errorf("entry %d of port %d is in the list of port %d", i, q.nodes[i].port, port)
			}
			prev = i
			length++
		}
		if length != int(l.n) || l.newest != prev {
			return fmt.Errorf("port %d has %d entries, counted %d", port, length, l.n)
		}
		total += length
	}
	free := 0
	for i := q.free; i != 0 && free <= q.max(); i = q.nodes[i].next {
		free++
	}
	if total != q.used || total+free != q.max() {
		return fmt.Errorf("%d entries, counted %d, %d free of %d", total, q.used, free, q.max())
	}
	if waiting > q.used {
		return fmt.Errorf("%d flows wait, the queue has %d", waiting, q.used)
	}
	return nil
}
