package pipeline

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// TestEveryFlippedBitOfTheTables: a snapshot in which one bit is another, made to look
// undamaged, is refused, or decides about packets like any other: no panic, and nothing
// leaves that is not well formed.
func TestEveryFlippedBitOfTheTables(t *testing.T) {
	w := newFuzzed(t)
	contents := w.snapshot.Contents()
	good, err := table.Encode(nil, &contents)
	if err != nil {
		t.Fatal(err)
	}
	frames := [][]byte{}
	for _, family := range []int{4, 6} {
		w.family = family
		for _, s := range []string{"client:4000 > vip:80", "outside:4000 > vip:80", "node:4000 > vip:80", "web:8080 > client:4000"} {
			f := w.frame(0, &step{sends: s})
			frames = append(frames, f.Bytes())
		}
	}
	taken, refused := 0, 0
	for at := range 8 * len(good) {
		b := append([]byte(nil), good...)
		b[at/8] ^= 1 << (at % 8)
		seal(b)
		s, err := table.Load(b)
		if err != nil {
			refused++
			continue
		}
		taken++
		w.snapshot = s
		w.throw(t, frames)
	}
	if taken == 0 || refused == 0 {
		t.Errorf("%d taken and %d refused: the test proves nothing", taken, refused)
	}
	t.Logf("%d bits: %d snapshots taken, %d refused", taken+refused, taken, refused)
}

// seal makes the checksum of a snapshot right again: CRC32C of all but itself.
func seal(b []byte) {
	const at = 12
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[at:], crc32.Update(crc32.Checksum(b[:at], castagnoli), castagnoli, b[at+4:]))
}

// throw processes frames at every port under the tables in hand.
func (w *world) throw(t *testing.T, frames [][]byte) {
	t.Helper()
	flows, err := conntrack.New(64)
	if err != nil {
		t.Fatal(err)
	}
	w.flows, w.pipeline = flows, New(Config{Flows: flows, Rand: rand.New(rand.NewPCG(1, 2))})
	for _, f := range frames {
		for port := uint16(1); port <= 5; port++ {
			in := append(make([]byte, 0, len(f)+1500), f...)
			w.judge(f, in, w.pipeline.Process(w.snapshot, in, packet.Punt{Port: port}, int64(w.clock), nil))
		}
	}
}

// TestFlippedBitsOfTheFlowTable: the kernel's memory changes under the pipeline, by anybody
// who may write it. No packet makes it panic, and a table opened again is whole.
func TestFlippedBitsOfTheFlowTable(t *testing.T) {
	w := newFuzzed(t)
	rng := rand.New(rand.NewPCG(21, 22))
	const slots = 1 + 8*conntrack.BucketSlots
	whole := 0
	for range 300 {
		mem, tags := make([]byte, slots*conntrack.SlotSize), make([]byte, 8*conntrack.TagSize)
		flows, _, err := conntrack.Map(mem, tags)
		if err != nil {
			t.Fatal(err)
		}
		w.flows, w.pipeline = flows, New(Config{Flows: flows, Rand: rng})
		w.family = 4
		for round := range 40 {
			flip(rng, mem[conntrack.SlotSize:], round)
			flip(rng, tags, round)
			for _, s := range []string{"client:4000 > vip:80", "web:8080 > client:4000", "outside:4001 > vip:80", "remote:8080 > client:4000"} {
				f := w.frame(1, &step{sends: s, flags: syn})
				in := append(make([]byte, 0, 2048), f.Bytes()...)
				w.pipeline.Process(w.snapshot, in, w.punt(&step{sends: s}), int64(w.clock), nil)
			}
			w.pipeline.Expire(w.snapshot, int64(w.clock), 64)
		}
		again, _, err := conntrack.Map(mem, tags)
		if err != nil {
			t.Fatalf("a table with a good header was refused: %v", err)
		}
		again.Range(func(f *conntrack.Flow) bool {
			var peer, found conntrack.Flow
			if !again.Peer(f, &peer) || !again.Lookup(&peer.Tuple, &found) {
				t.Errorf("%+v has lost its other direction", f.Tuple)
			}
			whole++
			return true
		})
	}
	if whole == 0 {
		t.Error("no flow has outlived the damage: the test proves nothing")
	}
}

// flip changes one bit of what is in use, now and then of anything.
func flip(rng *rand.Rand, b []byte, round int) {
	for range 64 {
		at := rng.IntN(len(b))
		if b[at] != 0 || round%4 == 0 {
			b[at] ^= 1 << rng.IntN(8)
			return
		}
	}
}
