package fragment

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/reason"
)

// BenchmarkMeet is the cost of one fragment of datagrams of six, in order.
func BenchmarkMeet(b *testing.B) {
	table, err := New(Default)
	if err != nil {
		b.Fatal(err)
	}
	var lost Losses
	frame := frameOf(1514)
	k, fate, now := key(2, 0), Fate{Reason: reason.Established}, int64(time.Hour)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now += 100
		n := uint16(i % 6)
		if n == 0 {
			k.ID++
		}
		table.Meet(&k, 2, Piece{From: 1480 * n, To: 1480 * (n + 1), Last: n == 5}, frame, now, &fate, &lost)
		if n == 0 {
			fate.ID = table.Idents.Next(&k.Src, &k.Dst, 17)
			table.Decide(&k, &fate, &lost)
		}
	}
}

// BenchmarkMeetBackwards is the same with the first one last: five of six are held.
func BenchmarkMeetBackwards(b *testing.B) {
	table, err := New(Default)
	if err != nil {
		b.Fatal(err)
	}
	var lost Losses
	frame, room := frameOf(1514), make([]byte, 4096)
	k, fate, now := key(2, 0), Fate{Reason: reason.Established}, int64(time.Hour)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now += 100
		n := uint16(5 - i%6)
		if n == 5 {
			k.ID++
		}
		table.Meet(&k, 2, Piece{From: 1480 * n, To: 1480 * (n + 1), Last: n == 5}, frame, now, &fate, &lost)
		if n == 0 {
			for r := table.Decide(&k, &fate, &lost); r.Any(); {
				r.Next(room)
			}
		}
	}
}

// BenchmarkFlood is one fragment of a datagram of its own, the port being at its bound.
func BenchmarkFlood(b *testing.B) {
	table, err := New(Default)
	if err != nil {
		b.Fatal(err)
	}
	var lost Losses
	frame := frameOf(1514)
	k, fate, now := key(2, 0), Fate{}, int64(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		now += 100
		k.ID++
		table.Meet(&k, 2, Piece{From: 1480, To: 2960}, frame, now, &fate, &lost)
	}
}
