package xsk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkRoundOfFrame measures our side of a frame's whole round (Refill, Receive, Bytes,
// Transmit, Complete) with a kernel that costs nearly nothing. Its part is in the figure.
func BenchmarkRoundOfFrame(b *testing.B) {
	const burst = 64
	u := newUmem(b, UmemConfig{Frames: 4096})
	s := offline(b, u, 2048)
	batch := make([]Frame, burst)
	var sink byte
	rounds := 0
	for b.Loop() {
		s.Refill(burst)
		s.receiveBurst(burst)
		n := s.Receive(batch)
		for i := range batch[:n] {
			sink += u.Bytes(batch[i])[0]
		}
		if _, err := s.Transmit(batch[:n]); err != nil {
			b.Fatal(err)
		}
		s.finishBurst(n)
		s.Complete()
		rounds++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds*burst), "ns/frame")
	b.ReportMetric(0, "ns/op")
	conserved(b, u)
}

// receiveBurst and finishBurst play the kernel, as it does with one store a batch.
func (s *Socket) receiveBurst(n int) {
	c, p := s.fill.consumer.Load(), s.rx.producer.Load()
	for k := range n {
		*s.rx.entry(p, k) = unix.XDPDesc{Addr: *s.fill.entry(c, k) + packetHeadroom, Len: testLength}
	}
	s.fill.consumer.Store(c + uint32(n))
	s.rx.producer.Store(p + uint32(n))
}

func (s *Socket) finishBurst(n int) {
	c, p := s.tx.consumer.Load(), s.completion.producer.Load()
	for k := range n {
		*s.completion.entry(p, k) = s.tx.entry(c, k).Addr
	}
	s.tx.consumer.Store(c + uint32(n))
	s.completion.producer.Store(p + uint32(n))
}

// BenchmarkConserved measures the check over 4096 chunks.
func BenchmarkConserved(b *testing.B) {
	u := newUmem(b, UmemConfig{Frames: 4096})
	s := offline(b, u, 2048)
	s.Refill(2048)
	for b.Loop() {
		conserved(b, u)
	}
}

// BenchmarkCensus measures the counts by place.
func BenchmarkCensus(b *testing.B) {
	u := newUmem(b, UmemConfig{Frames: 4096})
	offline(b, u, 2048)
	for b.Loop() {
		if c := u.Census(); c.Free != 4096 {
			b.Fatalf("census %+v", c)
		}
	}
}
