package fragment

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/reason"
)

// FuzzTable: whatever fragments come, in whatever order, every one that was held
// comes back or is lost by name, no bound is passed, and nothing is left in the end.
// Each fragment is three bytes: which datagram and port, which part, and what happens else.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0x82, 0})
	f.Add([]byte{0, 0x82, 0, 0, 1, 0, 0, 0, 0})
	f.Add([]byte{0, 1, 0, 0, 1, 0, 0, 0x41, 0, 0, 0, 0})
	f.Add([]byte{0, 1, 0, 1, 1, 0, 2, 1, 0, 3, 1, 0, 4, 1, 0, 5, 1, 0, 6, 1, 0, 0, 0, 0})
	f.Add([]byte{0, 1, 0x80, 0, 0, 0, 9, 1, 1, 9, 0, 2})
	f.Fuzz(func(t *testing.T, ops []byte) {
		b := newBench(t, tight)
		held, lost := 0, 0
		count := func(_ reason.Reason, frames, _ int) { lost += frames }
		for ; len(ops) >= 3; ops = ops[3:] {
			k := key(uint16(2+ops[0]>>4&3), uint32(ops[0]&15))
			if ops[2]&0x80 != 0 {
				b.now += int64(time.Second)
			}
			from, to := uint16(ops[1]&15)*800, uint16(ops[1]&15)*800+800
			if ops[1]&0x40 != 0 {
				to += 8 // into the next one
			}
			p := Piece{From: from, To: to, Last: ops[1]&0x80 != 0}
			got := b.meet(k, p)
			b.lost.Take(count)
			switch got {
			case "held":
				held++
			case "decides":
				r := reason.Established
				if ops[2]&1 != 0 {
					r = reason.Fragment
				}
				held -= len(b.decide(k, r))
				b.lost.Take(count)
			}
			if held-lost < 0 {
				t.Fatalf("%d fragments were lost or came back that were never held", lost-held)
			}
			if n := b.table.Unfinished(); n > tight.Datagrams {
				t.Fatalf("%d datagrams are remembered", n)
			}
			if n := b.table.HeldBytes(); n > tight.Held || (held == lost) != (n == 0) {
				t.Fatalf("%d bytes are held of %d fragments", n, held-lost)
			}
		}
		b.now += int64(Lifetime)
		b.table.Expire(b.now, &b.lost)
		b.lost.Take(count)
		if held != lost {
			t.Errorf("%d fragments are neither lost nor came back", held-lost)
		}
		b.empty()
	})
}
