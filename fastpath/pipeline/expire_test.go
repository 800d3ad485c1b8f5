package pipeline

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
)

// TestExpire: what the sweep removes.
func TestExpire(t *testing.T) {
	cases := []struct {
		sentence string
		before   func(*world)
		removed  int
	}{
		{"a flow that is alive stays", later(time.Second), 0},
		{"a flow that was idle for too long goes", later(10 * time.Minute), 1},
		{"a flow whose frontend was deleted goes", deleted("vip"), 1},
		{"a flow whose backend was removed stays", removed("web:8080"), 0},
		{"without tables nothing goes", func(w *world) { later(10 * time.Minute)(w); w.snapshot = nil }, 0},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			w := newWorld(t, 4, packet.ProtocolUDP)
			w.serve("vip", "web:8080")
			for i := range connected {
				w.play(i, &connected[i])
			}
			c.before(w)
			if n := w.pipeline.Expire(w.snapshot, int64(w.clock), 1<<20); n != c.removed {
				t.Errorf("removed %d flows, want %d", n, c.removed)
			}
			if got := w.flows.Len(); got != 1-c.removed {
				t.Errorf("%d flows left, want %d", got, 1-c.removed)
			}
		})
	}
}

// TestHalfOpenIsEvictedBeforeEstablished: a flood of SYNs takes the place of older
// half-open connections and of no other.
func TestHalfOpenIsEvictedBeforeEstablished(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolTCP)
	w.serve("vip", "web:8080")
	w.flows.SetHalfOpenMax(8)
	for i := range connected {
		w.play(i, &connected[i])
	}
	for port := range uint16(1000) {
		w.clock += time.Second
		s := opens
		s.with = sourcePort(5000 + port)
		s.becomes = ""
		if r := w.send(&s); r.Verdict != Forward {
			t.Fatalf("SYN %d: %s, reason %s", port, r.Verdict, r.Reason)
		}
	}
	w.play(0, &speaks)
	w.play(0, &answers)
}
