package fragment

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

// bench is a table with small bounds and a clock.
type bench struct {
	t     *testing.T
	table *Table
	now   int64
	lost  Losses
}

func newBench(t *testing.T, b Bounds) *bench {
	table, err := New(b)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, table: table, now: int64(time.Hour)}
}

// tight is room for 8 datagrams, 4 of a port, and for 10 frames of 4 KiB held, 5 of a port.
var tight = Bounds{Shards: 1, Datagrams: 8, DatagramsPerPort: 4, Held: 10 * 4096, HeldPerPort: 5 * 4096}

func key(port uint16, id uint32) Key {
	return Key{Src: addr("10.0.0.1"), Dst: addr("10.96.0.1"), Protocol: 17, Port: port, ID: id}
}

var (
	first  = Piece{From: 0, To: 800, Mark: 1}
	second = Piece{From: 800, To: 1600}
	third  = Piece{From: 1600, To: 1700, Last: true}
)

func frameOf(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n) }

// meet says in words what becomes of a fragment of 800 bytes.
func (b *bench) meet(k Key, p Piece) string { return b.meetLong(k, p, 800) }

func (b *bench) meetLong(k Key, p Piece, length int) string {
	b.now++
	var fate Fate
	m, r := b.table.Meet(&k, k.Port, p, frameOf(length), b.now, &fate, &b.lost)
	switch m {
	case Decides:
		return "decides"
	case Follows:
		return "follows " + fate.Reason.String()
	case Held:
		return "held"
	}
	return r.String()
}

func (b *bench) decide(k Key, r reason.Reason) (frames []int) {
	rel := b.table.Decide(&k, &Fate{Reason: r}, &b.lost)
	room := make([]byte, 4096)
	for rel.Any() {
		n := rel.Next(room)
		if !bytes.Equal(room[:n], frameOf(n)) {
			b.t.Errorf("a held frame of %d bytes came back different", n)
		}
		frames = append(frames, n)
	}
	return frames
}

func (b *bench) losses() string {
	var s []string
	b.lost.Take(func(r reason.Reason, frames, bytes int) { s = append(s, fmt.Sprintf("%s %d/%d", r, frames, bytes)) })
	return strings.Join(s, ", ")
}

func (b *bench) want(sentence, got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: %q, want %q", sentence, got, want)
	}
}

// empty checks that nothing is left.
func (b *bench) empty() {
	b.t.Helper()
	if n, held := b.table.Unfinished(), b.table.HeldBytes(); n != 0 || held != 0 {
		b.t.Errorf("%d datagrams and %d bytes are left", n, held)
	}
}

func TestDatagramInOrder(t *testing.T) {
	b := newBench(t, tight)
	k := key(2, 1)
	b.want("the first one", b.meet(k, first), "decides")
	b.decide(k, reason.Established)
	b.want("the second", b.meet(k, second), "follows established")
	b.want("the last", b.meet(k, third), "follows established")
	b.empty()
}

func TestHeldFragmentsComeBackInOrderOfArrival(t *testing.T) {
	b := newBench(t, tight)
	k := key(2, 1)
	b.want("the last", b.meetLong(k, third, 3840), "held")
	b.want("the second", b.meetLong(k, second, 513), "held")
	b.want("the first", b.meet(k, first), "decides")
	if got := b.decide(k, reason.Reply); len(got) != 2 || got[0] != 3840 || got[1] != 513 {
		t.Errorf("frames of %v bytes came back", got)
	}
	b.want("losses", b.losses(), "")
	b.empty()
}

// TestHeldFragmentsThatNobodyFetches: what the caller has no frames for is dropped with its
// reason, and its memory is free again; what was fetched before is not lost.
func TestHeldFragmentsThatNobodyFetches(t *testing.T) {
	b := newBench(t, tight)
	k := key(2, 1)
	for i, n := range []int{3840, 513, 700} {
		b.want("one behind it", b.meetLong(k, Piece{From: uint16(1+i) * 800, To: uint16(2+i) * 800}, n), "held")
	}
	b.want("the first", b.meet(k, first), "decides")
	rel := b.table.Decide(&k, &Fate{Reason: reason.Reply}, &b.lost)
	room := make([]byte, 4096)
	if n := rel.Next(room); n != 3840 {
		t.Errorf("the frame that came first has %d bytes, want 3840", n)
	}
	rel.Drop(reason.RingFull, &b.lost)
	b.want("losses", b.losses(), "ring-full 2/1213")
	if held := b.table.HeldBytes(); held != 0 || rel.Any() || rel.Next(room) != 0 {
		t.Errorf("%d bytes are held, any left: %v", held, rel.Any())
	}
	rel.Drop(reason.RingFull, &b.lost)
	b.want("losses of nothing", b.losses(), "")
	b.want("one that comes later", b.meet(k, Piece{From: 3200, To: 4000}), "follows reply")
}

// TestDecisionThatComesTooLate: what another worker has given up meanwhile stays so, and what is
// not remembered any more begins nothing.
func TestDecisionThatComesTooLate(t *testing.T) {
	b := newBench(t, tight)
	k := key(2, 1)
	b.meet(k, second)
	b.want("the first", b.meet(k, first), "decides")
	b.table.Refuse(&k, k.Port, reason.TooBig, b.now, &b.lost)
	if got := b.decide(k, reason.Reply); got != nil {
		t.Errorf("frames of %v bytes came back", got)
	}
	b.want("losses", b.losses(), "too-big 1/800")
	b.want("the last", b.meet(k, third), "too-big")

	n := b.table.Unfinished()
	if got := b.decide(key(2, 7), reason.Reply); got != nil || b.table.Unfinished() != n {
		t.Errorf("a datagram that is not there: frames of %v bytes, %d datagrams, want %d", got, b.table.Unfinished(), n)
	}
}

func TestWhatADropTakesAlong(t *testing.T) {
	b := newBench(t, tight)
	k := key(2, 1)
	b.meet(k, second)
	b.want("the first", b.meet(k, first), "decides")
	if got := b.decide(k, reason.Fragment); got != nil {
		t.Errorf("frames of %v bytes came back", got)
	}
	b.want("losses", b.losses(), "fragment 1/800")
	b.want("the last", b.meet(k, third), "follows fragment")
	b.empty()
}

// TestRefusals: each reason of this package, once more.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		sentence string
		pieces   []Piece
		is       reason.Reason
	}{
		{"a duplicate of the first", []Piece{first, first}, reason.FragmentDuplicate},
		{"a duplicate of another", []Piece{second, second}, reason.FragmentDuplicate},
		{"a first one with another header", []Piece{first, {From: 0, To: 800, Mark: 2}}, reason.FragmentOverlap},
		{"an overlap in front", []Piece{second, {From: 0, To: 808}}, reason.FragmentOverlap},
		{"an overlap behind", []Piece{second, {From: 1592, To: 2000}}, reason.FragmentOverlap},
		{"an overlap of all", []Piece{second, {From: 0, To: 2000}}, reason.FragmentOverlap},
		{"a part", []Piece{second, {From: 808, To: 816}}, reason.FragmentOverlap},
		{"an end before what has come", []Piece{third, {From: 0, To: 100, Last: true}}, reason.FragmentOverlap},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			b := newBench(t, tight)
			k := key(2, 1)
			b.meet(k, c.pieces[0])
			b.want("it", b.meet(k, c.pieces[1]), c.is.String())
			if c.is == reason.FragmentOverlap {
				b.want("the next", b.meet(k, Piece{From: 8000, To: 8008}), reason.FragmentOverlap.String())
			}
		})
	}
	t.Run("one that the caller refuses", func(t *testing.T) {
		b := newBench(t, tight)
		k := key(2, 1)
		b.meet(k, second)
		b.table.Refuse(&k, 2, reason.FragmentTiny, b.now, &b.lost)
		b.want("losses", b.losses(), "fragment-tiny 1/800")
		b.want("the next", b.meet(k, third), reason.FragmentTiny.String())
	})
	t.Run("one whose first did not come", func(t *testing.T) {
		b := newBench(t, tight)
		b.meet(key(2, 1), second)
		b.now += int64(Lifetime)
		b.table.Expire(b.now, &b.lost)
		b.want("losses", b.losses(), reason.FragmentTimeout.String()+" 1/800")
		b.empty()
	})
}

// TestKeysDoNotMix: what differs in one field of the key is another datagram.
func TestKeysDoNotMix(t *testing.T) {
	base := key(2, 1)
	for name, change := range map[string]func(*Key){
		"source": func(k *Key) { k.Src = addr("10.0.0.2") }, "destination": func(k *Key) { k.Dst = addr("10.96.0.2") },
		"network": func(k *Key) { k.Network = 1 }, "identification": func(k *Key) { k.ID = 2 },
		"port": func(k *Key) { k.Port = 3 }, "protocol": func(k *Key) { k.Protocol = 6 }, "direction": func(k *Key) { k.Egress = true },
	} {
		b := newBench(t, tight)
		other := base
		change(&other)
		b.want(name, b.meet(base, first), "decides")
		b.decide(base, reason.Established)
		b.want("a later fragment of another "+name, b.meet(other, second), "held")
		b.want("a later fragment of the same", b.meet(base, second), "follows established")
	}
}

// TestPortBound: a port loses its own oldest datagram, and nobody else does.
func TestPortBound(t *testing.T) {
	b := newBench(t, tight)
	b.meet(key(3, 100), second)
	for id := range uint32(4) {
		b.want("up to the bound", b.meet(key(2, id), second), "held")
	}
	b.want("losses", b.losses(), "")
	b.want("one more", b.meet(key(2, 4), second), "held")
	b.want("losses", b.losses(), reason.FragmentTableFull.String()+" 1/800")
	b.want("the oldest is forgotten", b.meet(key(2, 0), first), "decides") // which pushes out number 1
	b.want("the youngest is not", b.meet(key(2, 4), first), "decides")
	b.want("the other port's is not", b.meet(key(3, 100), first), "decides")
	if got := b.decide(key(3, 100), reason.Established); len(got) != 1 {
		t.Errorf("%d fragments of the other port were kept, want 1", len(got))
	}
}

// TestFullTable: when all is used up, the port that has most of it pays.
func TestFullTable(t *testing.T) {
	b := newBench(t, tight)
	for id := range uint32(4) {
		b.meet(key(2, id), second)
	}
	for id := range uint32(3) {
		b.meet(key(3, id), second)
	}
	b.meet(key(4, 0), second)
	b.want("losses", b.losses(), "")
	b.want("a port that has nothing yet", b.meet(key(5, 0), second), "held")
	b.want("losses", b.losses(), "fragment-table-full 1/800")
	for _, k := range []Key{key(4, 0), key(3, 0), key(3, 1), key(3, 2), key(5, 0), key(2, 1), key(2, 2), key(2, 3)} {
		b.want(fmt.Sprintf("port %d, datagram %d", k.Port, k.ID), b.meet(k, second), "fragment-duplicate")
	}
}

// TestHeldBound: bytes are bounded like datagrams.
func TestHeldBound(t *testing.T) {
	b := newBench(t, tight)
	long := func(port uint16, id uint32, n int) string {
		return b.meetLong(key(port, id), Piece{From: uint16(800 * (n + 1)), To: uint16(800 * (n + 2))}, 4096)
	}
	for n := range 3 {
		b.want("the first datagram", long(2, 0, n), "held")
	}
	b.want("a second one", long(2, 1, 0), "held")
	b.want("and more of it", long(2, 1, 1), "held")
	b.want("losses", b.losses(), "")
	b.want("one frame too many", long(2, 1, 2), "held")
	b.want("the oldest datagram of the port goes", b.losses(), "fragment-table-full 3/12288")
	for n := 3; n < 5; n++ {
		b.want("the second goes on", long(2, 1, n), "held")
	}
	b.want("one that alone needs more than its port may have", long(2, 1, 5), "fragment-table-full")
	b.want("goes whole", b.losses(), "fragment-table-full 5/20480")
	b.want("and is remembered", b.meet(key(2, 1), first), "fragment-table-full")
	if n := b.table.HeldBytes(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
	for port := uint16(3); port < 6; port++ {
		for n := range 4 {
			long(port, 0, n)
		}
	}
	b.want("a full store", b.losses(), "fragment-table-full 4/16384")
}

// TestAMillionDatagrams: memory is what the bounds say, and one port's flood takes nothing
// from another port.
func TestAMillionDatagrams(t *testing.T) {
	b := newBench(t, Default)
	patient := key(3, 7)
	b.meet(patient, second)
	k, lost := key(2, 0), 0
	room := frameOf(800)
	for id := range uint32(1_000_000) {
		k.ID, k.Src[15] = id&0xffff, byte(id>>16)
		var fate Fate
		b.now++
		if m, r := b.table.Meet(&k, 2, second, room, b.now, &fate, &b.lost); m != Held {
			t.Fatalf("datagram %d: %v %s", id, m, r)
		}
	}
	b.lost.Take(func(r reason.Reason, frames, _ int) {
		if r != reason.FragmentTableFull {
			t.Errorf("%d lost as %s", frames, r)
		}
		lost += frames
	})
	n, held := b.table.Unfinished(), b.table.HeldBytes()
	if n > Default.DatagramsPerPort+1 || n+lost != 1_000_001 {
		t.Errorf("%d datagrams are remembered, %d were lost", n, lost)
	}
	if held > Default.HeldPerPort+1024 {
		t.Errorf("%d bytes are held", held)
	}
	b.want("the other port's", b.meet(patient, first), "decides")
	if got := b.decide(patient, reason.Established); len(got) != 1 {
		t.Errorf("%d of its fragments came back, want 1", len(got))
	}
}

func TestMeetDoesNotAllocate(t *testing.T) {
	b := newBench(t, Default)
	k, frame, room := key(2, 0), frameOf(800), make([]byte, 4096)
	fate := Fate{Reason: reason.Established}
	one := func() {
		k.ID++
		b.now++
		b.table.Meet(&k, 2, second, frame, b.now, &fate, &b.lost)
		b.table.Meet(&k, 2, first, frame, b.now, &fate, &b.lost)
		fate.ID = b.table.Idents.Next(&k.Src, &k.Dst, 17)
		r := b.table.Decide(&k, &fate, &b.lost)
		for r.Any() {
			r.Next(room)
		}
		b.table.Expire(b.now, &b.lost)
		if k.ID%2 == 0 {
			b.table.Meet(&k, 2, third, frame, b.now, &fate, &b.lost)
		}
	}
	if n := testing.AllocsPerRun(1000, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBounds(t *testing.T) {
	for _, b := range []Bounds{{}, {Shards: 1}, {Shards: 2, Datagrams: 1, DatagramsPerPort: 2, Held: 1 << 20, HeldPerPort: 1 << 20}, {Shards: 1, Datagrams: 1, DatagramsPerPort: 1, Held: 100, HeldPerPort: 1 << 20}} {
		if _, err := New(b); err == nil {
			t.Errorf("%+v was accepted", b)
		}
	}
}

// TestIdents: none comes twice before all have come, whatever the addresses.
func TestIdents(t *testing.T) {
	var x Idents
	x.start()
	a4, b4, a6, b6 := addr("10.0.0.1"), addr("10.0.0.2"), addr("fd00::1"), addr("fd00::2")
	seen := make([]bool, 1<<16)
	for i := range 1 << 16 {
		id := x.Next(&a4, &b4, 17)
		if id > 0xffff || seen[id] {
			t.Fatalf("the %dth identification is %d, which came before or is none", i, id)
		}
		seen[id] = true
	}
	wide := map[uint32]bool{}
	for range 1 << 17 {
		wide[x.Next(&a6, &b6, 17)] = true
	}
	if len(wide) != 1<<17 {
		t.Errorf("%d different ones among %d", len(wide), 1<<17)
	}
}
