package conntrack

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The C side reads these bytes: xdp/bpf/flow.h.
func TestSlotBytes(t *testing.T) {
	mem := newMemory(RoundSlots(8))
	table, _, err := mem.open()
	if err != nil {
		t.Fatal(err)
	}
	fwd := &Flow{
		Tuple: Tuple{
			Src: addr("fd00:102:304:506:708:90a:b0c:d0e"), Dst: addr("fd01:1112:1314:1516:1718:191a:1b1c:1d1e"),
			SrcPort: 0x0102, DstPort: 0x0304, Network: 0x2a3b4c & 0x3fffff, Protocol: 17,
		},
		Rewrite: Rewrite{
			Src: addr("fd02:2122:2324:2526:2728:292a:2b2c:2d2e"), Dst: addr("fd03:3132:3334:3536:3738:393a:3b3c:3d3e"),
			SrcPort: 0x0506, DstPort: 0x0708, L3: 0x4142,
		},
		Frontend: 0x51525354, Backend: 0x55565758, In: 0x4344, Target: 0x6162, Stamp: Stamp{0x6364, 0x6566, 0x6768},
		Flags: FlagOutside, Mode: ModeLane, State: StateSeen | StateACK,
	}
	rev := &Flow{Tuple: Tuple{Src: fwd.Rewrite.Dst, Dst: fwd.Rewrite.Src, Network: fwd.Network, Protocol: 17}, Rewrite: Rewrite{Src: fwd.Dst, Dst: fwd.Src}}
	mustInsert(t, table, fwd, rev, 0x71727374)

	slot := mem.slot(fwd.slot)
	le := binary.LittleEndian
	word := func(a []byte, i int) uint32 { return le.Uint32(a[4*i:]) }
	src, dst, nsrc, ndst := fwd.Src[:], fwd.Dst[:], fwd.Rewrite.Src[:], fwd.Rewrite.Dst[:]
	want := le.AppendUint32(nil, 2) // written once
	want = append(want, 0, byte(ModeLane), byte(FlagOutside), 0)
	want = le.AppendUint64(want, 0x0201|0x0403<<16|17<<32|uint64(fwd.Network)<<40|1<<62|1<<63)
	for _, a := range [][]byte{src, dst, nsrc, ndst} {
		want = le.AppendUint32(want, word(a, 3))
	}
	want = append(want, 5, 6, 7, 8)
	want = le.AppendUint16(le.AppendUint16(want, 0x4142), 0x4344)
	want = le.AppendUint32(le.AppendUint32(want, 0x51525354), 0x55565758)
	want = le.AppendUint32(want, 0x71727374)
	want = le.AppendUint16(le.AppendUint16(want, uint16(StateSeen|StateACK)), 1)
	for _, v := range []uint16{0x6162, 0x6364, 0x6566, 0x6768} {
		want = le.AppendUint16(want, v)
	}
	for _, a := range [][]byte{src, dst, nsrc, ndst} {
		for i := range 3 {
			want = le.AppendUint32(want, word(a, i))
		}
	}
	want = le.AppendUint32(want, rev.slot)
	want = le.AppendUint32(want, 0)
	want = le.AppendUint32(want, 0x71727374)
	want = le.AppendUint32(want, 0)
	if diff := cmp.Diff(want, slot); diff != "" {
		t.Errorf("slot differs (-want +got):\n%s", diff)
	}
}

// The C side computes these hashes: two fixed points of each family, worked out apart from
// this package by the definition with the keys 1 to 10.
func TestHashFixedPoints(t *testing.T) {
	keys := hashKeys{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		name  string
		tuple Tuple
		want  uint64
	}{
		{"IPv4", Tuple{Src: addr("10.0.0.1"), Dst: addr("10.96.0.10"), SrcPort: 40000, DstPort: 53, Protocol: 17}, 0x6440363861a91605},
		{"IPv6", Tuple{Src: addr("fd00:10:244:1::5"), Dst: addr("fd00:10:96::a"), SrcPort: 40000, DstPort: 443, Network: 9, Protocol: 6}, 0x2e03cea954e9b9aa},
	} {
		var k key
		if !k.encode(&c.tuple) {
			t.Fatalf("%s: tuple was refused", c.name)
		}
		if got := keys.hash(&k); got != c.want {
			t.Errorf("%s: hash is %#x, want %#x", c.name, got, c.want)
		}
	}
}

// What a slot has no room for is worked out from what it holds.
func TestL4Difference(t *testing.T) {
	for _, c := range []struct {
		because  string
		l3       uint16
		from, to [2]uint16
	}{
		{"ports stay, so that the addresses' difference is all", 0x1234, [2]uint16{1000, 80}, [2]uint16{1000, 80}},
		{"one port changes", 0x1234, [2]uint16{1000, 80}, [2]uint16{1000, 8080}},
		{"both ports change", 0xfffe, [2]uint16{65535, 1}, [2]uint16{1, 65535}},
		{"ports alone change", 0xffff, [2]uint16{40000, 443}, [2]uint16{40001, 6443}},
		{"ports change by as much as the addresses, the other way", 0xfeff, [2]uint16{5, 80}, [2]uint16{6, 80}},
		{"every bit is set", 0xffff, [2]uint16{0, 0}, [2]uint16{65535, 65535}},
	} {
		table := newTestTable(t, 64)
		fwd, rev := tcp6.connect(1, 1000, 1)
		fwd.SrcPort, fwd.DstPort = c.from[0], c.from[1]
		fwd.Rewrite.SrcPort, fwd.Rewrite.DstPort, fwd.Rewrite.L3, fwd.Rewrite.L4 = c.to[0], c.to[1], c.l3, 0
		mustInsert(t, table, fwd, rev, 1)
		var got Flow
		if !table.Lookup(&fwd.Tuple, &got) {
			t.Fatalf("%s: not found", c.because)
		}
		if want := l4Difference(fwd); got.Rewrite.L4 != want || fwd.Rewrite.L4 != want {
			t.Errorf("%s: difference is %#x looked up and %#x as inserted, want %#x", c.because, got.Rewrite.L4, fwd.Rewrite.L4, want)
		}
	}
}

func TestKeyRoundTrip(t *testing.T) {
	for _, s := range []service{tcp4, tcp6, udp4, udp6} {
		fwd, rev := s.connect(300, 65535, 9)
		for _, want := range []Tuple{fwd.Tuple, rev.Tuple} {
			var k key
			var got Tuple
			if !k.encode(&want) {
				t.Fatalf("%v was refused", want)
			}
			if k.decode(&got); got != want {
				t.Errorf("decoded %v, want %v", got, want)
			}
		}
	}
}
