package affinity

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

func client(n uint32) packet.Addr {
	return packet.Addr4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

func key(n uint32, session uint64) *Key { return &Key{Client: client(n), Session: session} }

func TestRemembers(t *testing.T) {
	tab := New(64)
	const timeout = 100
	find := func(sentence string, k *Key, now, want uint32) {
		t.Helper()
		if got := tab.Find(k, now, timeout); got != want {
			t.Errorf("%s: backend %d, want %d", sentence, got, want)
		}
	}
	find("nobody is known at first", key(1, 7), 0, 0)
	if got := tab.Remember(key(1, 7), 21, 0, 1000, timeout); got != 21 {
		t.Errorf("backend %d holds, want 21", got)
	}
	find("a client is known", key(1, 7), 1000, 21)
	find("until its time is over", key(1, 7), 1100, 21)
	find("and not longer", key(1, 7), 1101, 0)
	find("another client is not known", key(2, 7), 1000, 0)
	find("nor at another Service port", key(1, 8), 1000, 0)
	find("nor in another network", &Key{Client: client(1), Session: 7, Network: 5}, 1000, 0)
	find("a worker whose clock is behind knows it too", key(1, 7), 999, 21)

	tab.Remember(key(1, 7), 21, 21, 1090, timeout)
	find("a new flow begins the time anew", key(1, 7), 1190, 21)
	if got := tab.Remember(key(1, 7), 22, 0, 1190, timeout); got != 21 {
		t.Errorf("backend %d holds, want 21: another worker was faster", got)
	}
	if got := tab.Remember(key(1, 7), 22, 21, 1190, timeout); got != 22 {
		t.Errorf("backend %d holds, want 22: 21 must not be given any more", got)
	}
	find("the new one is known", key(1, 7), 1190, 22)
	if got := tab.Remember(key(1, 7), 23, 0, 1291, timeout); got != 23 {
		t.Errorf("backend %d holds, want 23: the time of the old record is over", got)
	}
	if n := tab.Len(); n != 1 {
		t.Errorf("%d records of one client, want 1", n)
	}
}

// TestTicksWrapAround: the counter of ticks begins again at 0 one day.
func TestTicksWrapAround(t *testing.T) {
	tab := New(8)
	tab.Remember(key(1, 7), 21, 0, 1<<32-10, 100)
	if got := tab.Find(key(1, 7), 50, 100); got != 21 {
		t.Errorf("backend %d, want 21", got)
	}
	if got := tab.Find(key(1, 7), 91, 100); got != 0 {
		t.Errorf("backend %d after the timeout, want none", got)
	}
}

// TestFull: a table has room for about as many clients as it says, and when it is full
// those who have not come for the longest time are forgotten.
func TestFull(t *testing.T) {
	tab := New(4096)
	if tab.Cap() != 4096 {
		t.Fatalf("room for %d, want 4096", tab.Cap())
	}
	now := uint32(0)
	for n := range uint32(4096 * 3 / 4) {
		now++
		tab.Remember(key(n, 7), n+1, 0, now, 1<<30)
	}
	lost := 0
	for n := range uint32(4096 * 3 / 4) {
		if tab.Find(key(n, 7), now, 1<<30) != n+1 {
			lost++
		}
	}
	if lost > 40 {
		t.Errorf("three quarters full, %d of %d are forgotten", lost, 4096*3/4)
	}
	for n := range uint32(100_000) {
		now++
		tab.Remember(key(1<<20+n, 7), n+1, 0, now, 1<<30)
	}
	if n := tab.Len(); n > tab.Cap() || n < tab.Cap()*9/10 {
		t.Errorf("%d records, want up to %d", n, tab.Cap())
	}
	recent := 0
	for n := range uint32(1000) {
		if tab.Find(key(1<<20+99_000+n, 7), now, 1<<30) == 99_001+n {
			recent++
		}
	}
	if recent < 900 {
		t.Errorf("%d of the last 1000 clients are remembered", recent)
	}
}

// TestSurvivesTheProcess: the next process that maps the memory goes on.
func TestSurvivesTheProcess(t *testing.T) {
	mem := bytesOf(make([]uint64, Memory(1024)/8))
	first, err := Map(mem)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(500) {
		first.Remember(key(n, 7), n+1, 0, n, 1<<30)
	}
	second, err := Map(mem)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(500) {
		if got := second.Find(key(n, 7), 500, 1<<30); got != n+1 {
			t.Fatalf("client %d: backend %d, want %d", n, got, n+1)
		}
	}
}

// TestTornRecord: whatever a kill left of a record, it is the old one, the new one or none.
func TestTornRecord(t *testing.T) {
	tab := New(8)
	tab.Remember(key(1, 7), 21, 0, 1000, 100)
	var r *record
	for i := range tab.buckets[0] {
		if tab.used(&tab.buckets[0][i]) {
			r = &tab.buckets[0][i]
		}
	}
	whole := *r
	for name, tear := range map[string]func(){
		"backend": func() { r.backend = 22 }, "client": func() { r.client = client(2) },
		"time": func() { r.last = 5000 }, "session": func() { r.session = 8 }, "network": func() { r.network = 1 },
	} {
		*r = whole
		tear()
		for _, k := range []*Key{key(1, 7), key(2, 7), key(1, 8), {Client: client(1), Session: 7, Network: 1}} {
			if got := tab.Find(k, 1000, 1<<30); got != 0 {
				t.Errorf("torn at the %s: %+v has backend %d, want none", name, k, got)
			}
		}
	}
}

// TestForeignMemory is emptied, and too little of it is refused.
func TestForeignMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		mem := bytesOf(make([]uint64, Memory(64)/8))
		for i := range mem {
			mem[i] = byte(rng.Uint32())
		}
		tab, err := Map(mem)
		if err != nil {
			t.Fatal(err)
		}
		if n := tab.Len(); n != 0 {
			t.Errorf("%d records in foreign memory", n)
		}
	}
	for _, size := range []int{0, 1, BucketSize, 2*BucketSize - 1} {
		if _, err := Map(make([]byte, size)); err == nil {
			t.Errorf("%d bytes are taken", size)
		}
	}
}

// TestWorkersAgree: of many workers that meet a new client at once all give it the same
// backend.
func TestWorkersAgree(t *testing.T) {
	tab := New(1024)
	for round := range uint32(200) {
		var got [8]uint32
		var all sync.WaitGroup
		for w := range got {
			all.Go(func() { got[w] = tab.Remember(key(round, 7), uint32(w)+1, 0, round, 100) })
		}
		all.Wait()
		for _, b := range got {
			if b != got[0] {
				t.Fatalf("round %d: workers gave %v", round, got)
			}
		}
	}
}

func TestDoesNotAllocate(t *testing.T) {
	tab := New(1024)
	k := Key{Client: client(1), Session: 7}
	if n := testing.AllocsPerRun(100, func() { tab.Remember(&k, tab.Find(&k, 1, 10)|1, 0, 1, 10) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzTable plays operations on a small table and compares with a map: a table with room for
// all never forgets.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("remember me, find me, remember me again"))
	f.Fuzz(func(t *testing.T, script []byte) {
		tab, now := New(4096), uint32(0)
		type known struct{ backend, last uint32 }
		want := map[Key]known{}
		const timeout = 50
		for ; len(script) >= 3; script = script[3:] {
			now += uint32(script[2] % 16)
			k := *key(uint32(script[0]%32), uint64(script[1]%4))
			w := want[k]
			if now-w.last > timeout {
				w.backend = 0
			}
			if got := tab.Find(&k, now, timeout); got != w.backend {
				t.Fatalf("%s", fmt.Sprintf("%+v at %d: %d, want %d", k, now, got, w.backend))
			}
			if script[1] >= 128 {
				b := uint32(script[0]) + 1
				holds := tab.Remember(&k, b, w.backend, now, timeout)
				if holds != b {
					t.Fatalf("%+v: %d holds, want %d", k, holds, b)
				}
				want[k] = known{b, now}
			}
		}
	})
}

func BenchmarkRemember(b *testing.B) {
	tab := New(1 << 17)
	for i := uint32(0); b.Loop(); i++ {
		k := Key{Client: client(i & 0xffff), Session: 7}
		found := tab.Find(&k, i, 1<<20)
		tab.Remember(&k, 5, found, i, 1<<20)
	}
}
