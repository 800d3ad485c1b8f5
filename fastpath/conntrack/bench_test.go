package conntrack

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

// connection makes both directions of the n-th of many flows: clients in 10.0.0.0/8 (or
// fd00:a::/64) through one VIP to one of 250 backends.
func connection(n int, v6 bool, fwd, rev *Flow) {
	client := packet.Addr4([4]byte{10, byte(n >> 30), byte(n >> 22), byte(n >> 14)})
	vip := packet.Addr4([4]byte{10, 96, 0, 10})
	backend := packet.Addr4([4]byte{10, 244, 1, byte(n%250 + 1)})
	if v6 {
		for _, a := range []*packet.Addr{&client, &vip, &backend} {
			a[0], a[1], a[10], a[11] = 0xfd, 0, 0, 0
			a[3] = 0xa
		}
	}
	port := uint16(1024 + n&0x3fff)
	*fwd = Flow{
		Tuple:    Tuple{Src: client, Dst: vip, SrcPort: port, DstPort: 53, Protocol: packet.ProtocolUDP},
		Rewrite:  Rewrite{Src: client, Dst: backend, SrcPort: port, DstPort: 5353},
		Frontend: 1, Backend: uint32(n%250 + 1),
	}
	*rev = Flow{
		Tuple:    Tuple{Src: backend, Dst: client, SrcPort: 5353, DstPort: port, Protocol: packet.ProtocolUDP},
		Rewrite:  Rewrite{Src: vip, Dst: client, SrcPort: 53, DstPort: port},
		Frontend: 1, Backend: uint32(n%250 + 1),
	}
}

// empty is a table whose pages are there, as those of a pinned array are.
func empty(b *testing.B, slots int) *Table {
	b.Helper()
	t, err := New(slots)
	if err != nil {
		b.Fatal(err)
	}
	for i := range t.slots[1:] {
		t.slots[i+1].seq.Store(0)
	}
	return t
}

// filled is a table with n flows at one quarter load.
func filled(b *testing.B, n int, v6 bool) *Table {
	b.Helper()
	t := empty(b, n*8)
	var fwd, rev Flow
	for i := range n {
		connection(i, v6, &fwd, &rev)
		if r := t.Insert(&fwd, &rev, 1); r != Inserted {
			b.Fatalf("flow %d: %v", i, r)
		}
	}
	return t
}

func BenchmarkLookup(b *testing.B) {
	for _, v6 := range []bool{false, true} {
		family := "IPv4"
		if v6 {
			family = "IPv6"
		}
		for _, n := range []int{1, 4_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", family, n), func(b *testing.B) { benchLookup(b, n, v6) })
		}
	}
}

func benchLookup(b *testing.B, n int, v6 bool) {
	t := filled(b, n, v6)
	tuples := make([]Tuple, n)
	var fwd, rev Flow
	for i := range tuples {
		connection(i, v6, &fwd, &rev)
		tuples[i] = fwd.Tuple
	}
	rand.Shuffle(n, func(i, j int) { tuples[i], tuples[j] = tuples[j], tuples[i] })
	b.ReportAllocs()
	b.ResetTimer()
	for i, k := 0, 0; i < b.N; i++ {
		if !t.Lookup(&tuples[k], &fwd) {
			b.Fatal("flow is missing")
		}
		if k++; k == n {
			k = 0
		}
	}
}

func BenchmarkLookupMiss(b *testing.B) {
	for _, n := range []int{4_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := filled(b, n, false)
			var fwd, rev Flow
			connection(0, false, &fwd, &rev)
			b.ResetTimer()
			for i := range b.N {
				fwd.Tuple.SrcPort, fwd.Tuple.DstPort = uint16(i), uint16(i>>16)|0x8000
				if t.Lookup(&fwd.Tuple, &rev) {
					b.Fatal("found what is not there")
				}
			}
		})
	}
}

// BenchmarkInsert fills a table of 2^22 slots (512 MiB) up to one quarter, again and again.
func BenchmarkInsert(b *testing.B) {
	for _, slots := range []int{1 << 15, 1 << 22} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			t := empty(b, slots)
			limit := t.Cap() / 4
			var fwd, rev Flow
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if t.Len() >= limit {
					b.StopTimer()
					drain(b, t)
					b.StartTimer()
				}
				connection(i, false, &fwd, &rev)
				if r := t.Insert(&fwd, &rev, 1); r != Inserted {
					b.Fatalf("flow %d: %v", i, r)
				}
			}
		})
	}
}

func drain(b *testing.B, t *Table) {
	b.Helper()
	everything := func(*Flow) bool { return true }
	timeouts := DefaultTimeouts()
	t.Sweep(1, t.Cap()*2, &timeouts, everything)
	if t.Len() != 0 {
		b.Fatalf("%d flows are left", t.Len())
	}
}

func BenchmarkTouch(b *testing.B) {
	t := filled(b, 1, false)
	var fwd, rev, f Flow
	connection(0, false, &fwd, &rev)
	t.Lookup(&fwd.Tuple, &f)
	for name, step := range map[string]uint32{"same tick": 0, "new tick": 1} {
		b.Run(name, func(b *testing.B) {
			now := uint32(2)
			for range b.N {
				now += step
				if !t.Touch(&f, StateSeen, now) {
					b.Fatal("flow is gone")
				}
			}
		})
	}
}

// BenchmarkSweep goes over tables of 2^20 slots with few flows, and at one quarter load.
func BenchmarkSweep(b *testing.B) {
	for _, flows := range []int{1_000, 1 << 17} {
		b.Run(fmt.Sprintf("flows=%d", flows), func(b *testing.B) {
			t := empty(b, 1<<20)
			var fwd, rev Flow
			for i := range flows {
				connection(i, false, &fwd, &rev)
				t.Insert(&fwd, &rev, 1)
			}
			timeouts := DefaultTimeouts()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				t.Sweep(1, 1024, &timeouts, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/slot")
		})
	}
}
