package conntrack

import (
	"math"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

// shareRun is a table that ports share, and their clients.
type shareRun struct {
	*testing.T
	table *Table
	now   uint32
	next  int
}

func newShareRun(t *testing.T, slots int) *shareRun {
	r := &shareRun{T: t, table: newTestTable(t, slots), now: 100}
	r.table.SharePorts()
	return r
}

// open begins a flow of a client on the port.
func (r *shareRun) open(s service, port uint16) (fwd, rev *Flow, result Result) {
	r.next++
	fwd, rev = s.connect(r.next&0xffff, uint16(1000+r.next>>16), 1)
	fwd.In, rev.Target = port, port
	return fwd, rev, r.table.Insert(fwd, rev, r.now)
}

// confirm opens a flow and answers it.
func (r *shareRun) confirm(s service, port uint16) (*Flow, Result) {
	r.Helper()
	fwd, rev, result := r.open(s, port)
	if result != Inserted {
		return fwd, result
	}
	flags := uint8(0)
	if s.protocol == packet.ProtocolTCP {
		flags = packet.FlagSYN | packet.FlagACK
	}
	if !r.table.Touch(rev, StateOf(flags), r.now) || !r.table.Touch(fwd, StateOf(packet.FlagACK), r.now) {
		r.Fatal("flow is gone")
	}
	return fwd, result
}

// flood opens as many flows as there are slots, one a tick.
func (r *shareRun) flood(s service, port uint16) (refused int) {
	for range len(r.table.slots) {
		if _, _, result := r.open(s, port); result != Inserted {
			refused++
		}
	}
	return refused
}

// near wants a number within some hundredths of what is expected.
func (r *shareRun) near(what string, got int, want float64) {
	r.Helper()
	if math.Abs(float64(got)-want) > 0.03*want+2 {
		r.Errorf("%s: %d, want about %.0f", what, got, want)
	}
}

// One port alone may have two thirds of the room; then others still have room, each as
// much as the next.
func TestShareOfTable(t *testing.T) {
	r := newShareRun(t, 1<<14)
	room := float64(r.table.Room())
	fill := func(port uint16) (n int, all []*Flow) {
		for {
			f, result := r.confirm(udp4, port)
			if result == ShareFull {
				return n, all
			}
			if result != Inserted && result != Full { // a crowded bucket
				t.Fatalf("flow %d of port %d: %v", n, port, result)
			}
			if result == Inserted {
				n++
				all = append(all, f)
			}
		}
	}
	first, all := fill(7)
	r.near("flows of one greedy port", first, room*2/3)
	second, _ := fill(8)
	r.near("flows of the next", second, room*2/9)
	if _, result := r.confirm(udp4, 9); result != Inserted {
		t.Errorf("a port that has nothing: %v", result)
	}
	for _, f := range all {
		var got Flow
		if !r.table.Lookup(&f.Tuple, &got) {
			t.Fatalf("%v is gone", f.Tuple)
		}
	}
	if f := r.table.Fill(); f.Port != 7 || f.Share < 1 {
		t.Errorf("fill %+v, want that port 7 has all of its share", f)
	}
	for _, f := range all[:first/2] {
		r.table.Delete(f)
	}
	if _, result := r.confirm(udp4, 7); result != Inserted {
		t.Errorf("after half of its flows have ended: %v", result)
	}
	checked(t, r.table)
}

// A port that floods evicts its own unconfirmed flows and no others, confirmed ones never,
// and stays within its share.
func TestFloodEvictsItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		s       service
		max     func(*Table) int
		number  func(*Table) int
		evicted func(*Table) uint64
	}{
		"half-open connections": {tcp4, func(t *Table) int { return t.half.max() }, (*Table).HalfOpen, (*Table).HalfOpenEvicted},
		"unanswered datagrams":  {udp6, (*Table).UnansweredMax, (*Table).Unanswered, (*Table).UnansweredEvicted},
	} {
		t.Run(name, func(t *testing.T) {
			r := newShareRun(t, 1<<12)
			var others, established []*Flow
			for range 20 {
				f, _, _ := r.open(c.s, 3)
				others = append(others, f)
				f, _ = r.confirm(c.s, 4)
				established = append(established, f)
				r.now++
			}
			for range 3 * c.max(r.table) {
				if _, _, result := r.open(c.s, 4); result != Inserted {
					t.Fatalf("one of a flood that is slow enough: %v", result)
				}
				if r.next%100 == 0 {
					r.now++
				}
			}
			for _, f := range append(others, established...) {
				if !r.table.Lookup(&f.Tuple, new(Flow)) {
					t.Fatalf("the flow of port %d is gone", f.In)
				}
			}
			r.near("unconfirmed flows", c.number(r.table), 20+float64(c.max(r.table)-20)*2/3)
			if c.evicted(r.table) == 0 {
				t.Error("nothing was evicted")
			}
			if _, _, result := r.open(c.s, 5); result != Inserted {
				t.Errorf("a third port: %v", result)
			}
			checked(t, r.table)
		})
	}
}

// Two ports that flood come to share evenly, though one was there first.
func TestFloodsShareEvenly(t *testing.T) {
	r := newShareRun(t, 1<<12)
	for i := range 20 * r.table.UnansweredMax() {
		port := uint16(3)
		if i > r.table.UnansweredMax() && i%2 == 0 {
			port = 4
		}
		if _, _, result := r.open(udp4, port); result != Inserted {
			t.Fatalf("flow %d of port %d: %v", i, port, result)
		}
		if i%20 == 0 {
			r.now++
		}
	}
	want := float64(r.table.UnansweredMax()) * 2 / 5
	for _, port := range []uint16{3, 4} {
		r.near("flows of a port", int(r.table.unanswered.lists[port].n), want)
	}
	checked(t, r.table)
}

// Faster than that, what is new is refused: those let in may finish.
func TestFloodOfTheYoung(t *testing.T) {
	for s, want := range map[service]Result{tcp4: HalfOpenFull, udp4: ShareFull} {
		r := newShareRun(t, 1<<10)
		if refused := r.flood(s, 3); refused == 0 {
			t.Fatal("nothing is refused")
		}
		if _, _, result := r.open(s, 3); result != want {
			t.Errorf("one more: %v, want %v", result, want)
		}
		if _, _, result := r.open(s, 4); result != Inserted {
			t.Errorf("another port: %v", result)
		}
		checked(t, r.table)
	}
}

// Datagrams that go one way for longer than a flood does are no flood.
func TestOneWayStreamStays(t *testing.T) {
	r := newShareRun(t, 1<<10)
	stream, _, _ := r.open(udp4, 3)
	for range 4 * accepted {
		r.now++
		if !r.table.Touch(stream, StateSeen, r.now) {
			t.Fatal("the stream is gone")
		}
	}
	for range 4 {
		r.flood(udp4, 3)
		r.now += grace
	}
	if !r.table.Lookup(&stream.Tuple, new(Flow)) {
		t.Error("the stream is gone")
	}
	checked(t, r.table)
}

// When so many ports have something that nothing is left, the one that has most gives way
// to one that has nothing.
func TestLongestGivesWay(t *testing.T) {
	r := newShareRun(t, 1<<7)
	for port := uint16(10); r.table.unanswered.free != 0; port++ {
		for range 4 {
			r.open(udp4, port)
		}
		if port > 1000 {
			t.Fatal("there is always room")
		}
	}
	r.now += grace
	if _, _, result := r.open(udp4, 5); result != Inserted {
		t.Errorf("a port that has nothing: %v", result)
	}
	checked(t, r.table)
}

// The counts follow a client that moves to another port, and a flow that is replaced.
func TestSharesFollow(t *testing.T) {
	r := newShareRun(t, 1<<10)
	fwd, _ := r.confirm(tcp4, 3)
	rev := mustPeer(t, r.table, fwd)
	if !r.table.Restamp(rev, rev.Stamp, 8) {
		t.Fatal("flow is gone")
	}
	checked(t, r.table)
	if got := r.table.shares.of(8); got != 1 {
		t.Errorf("port 8 has %d flows, want 1", got)
	}
	next, nextRev := tcp4.connect(r.next, 1000, 2)
	next.In = 6
	if result := r.table.Replace(fwd, next, nextRev, r.now); result != Inserted {
		t.Fatalf("Replace: %v", result)
	}
	checked(t, r.table)
	if r.table.shares.of(8) != 0 || r.table.shares.of(6) != 1 {
		t.Errorf("ports 8 and 6 have %d and %d flows, want 0 and 1", r.table.shares.of(8), r.table.shares.of(6))
	}
}

// A restarted process knows the shares, and whose unconfirmed flows are whose.
func TestSharesAfterRestart(t *testing.T) {
	r := newShareRun(t, 1<<10)
	for i := range 200 {
		r.open([]service{tcp4, udp4}[i%2], uint16(3+i%3))
	}
	again := newTable(r.table.slots, r.table.records)
	if err := again.readHeader(); err != nil {
		t.Fatal(err)
	}
	again.repair(&Report{})
	again.SharePorts()
	checked(t, again)
	for port := range uint16(10) {
		if got, want := again.shares.of(port), r.table.shares.of(port); got != want {
			t.Errorf("port %d has %d flows, had %d", port, got, want)
		}
		for i, q := range []*queue{&again.half, &again.unanswered} {
			if got, want := q.lists[port].n, []*queue{&r.table.half, &r.table.unanswered}[i].lists[port].n; got != want {
				t.Errorf("port %d, queue %d: %d, had %d", port, i, got, want)
			}
		}
	}
}

// The closed connections of a port make room for its new ones, those of others do not.
func TestReclaimOwn(t *testing.T) {
	r := newShareRun(t, 1<<8)
	end := func(port uint16) {
		f, result := r.confirm(tcp4, port)
		if result != Inserted {
			t.Fatalf("port %d: %v", port, result)
		}
		r.table.Touch(mustPeer(t, r.table, f), StateRST, r.now)
	}
	for range 10 {
		end(4)
	}
	for {
		f, result := r.confirm(tcp4, 3)
		if result == ShareFull {
			break
		}
		if result == Inserted && r.next%2 == 0 {
			r.table.Touch(mustPeer(t, r.table, f), StateRST, r.now)
		}
	}
	fwd, _, _ := r.open(tcp4, 3)
	if r.table.ReclaimOwn(fwd, r.now+silence-1) {
		t.Error("a connection that was closed a moment ago has given way")
	}
	r.now += silence
	reclaimed := 0
	for range 10 {
		before4 := r.table.shares.of(4)
		fwd, rev, _ := r.open(tcp4, 3)
		if !r.table.ReclaimOwn(fwd, r.now) {
			continue // no closed one near its place
		}
		reclaimed++
		if result := r.table.Insert(fwd, rev, r.now); result != Inserted {
			t.Errorf("after ReclaimOwn: %v", result)
		}
		if got := r.table.shares.of(4); got != before4 {
			t.Errorf("port 4 has %d flows, had %d", got, before4)
		}
	}
	if reclaimed == 0 {
		t.Error("no closed connection gives way")
	}
	checked(t, r.table)
}

// What is in the table is never evicted for a port's share but what is unconfirmed, however
// many workers there are; run with -race.
func TestSharesAreConcurrent(t *testing.T) {
	r := newShareRun(t, 1<<12)
	var established []*Flow
	for range 100 {
		f, _ := r.confirm(tcp4, 3)
		established = append(established, f)
	}
	done := make(chan struct{})
	for w := range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range 5000 {
				s := []service{tcp4, udp4, tcp6, udp6}[w]
				fwd, rev := s.connect(1000+w*8000+i, 4000, 1)
				fwd.In = uint16(3 + i%2)
				r.table.Insert(fwd, rev, uint32(200+i/50))
			}
		}()
	}
	for range 4 {
		<-done
	}
	for _, f := range established {
		if !r.table.Lookup(&f.Tuple, new(Flow)) {
			t.Fatalf("%v is gone", f.Tuple)
		}
	}
	checked(t, r.table)
}

// TestHalfOpenMaxOfSharedTable: the bound that an operator asks for may be lower than a quarter
// of the table, and not higher: a port that floods shall evict what it left half-open before
// its share of the table is used up.
func TestHalfOpenMaxOfSharedTable(t *testing.T) {
	table := newShareRun(t, 1<<12).table
	quarter := table.Cap() / 4
	for _, c := range []struct{ asked, want int }{{quarter / 2, quarter / 2}, {quarter, quarter}, {quarter + 1, quarter}, {table.Cap(), quarter}, {0, quarter}} {
		table.SetHalfOpenMax(c.asked)
		if got := table.half.max(); got != c.want {
			t.Errorf("bound of half-open connections %d, asked for %d of %d slots, want %d", got, c.asked, table.Cap(), c.want)
		}
	}
}
