package dataplane

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/counter"
)

// serving brings up a node whose fast path serves.
func serving(b *testing.B) (*network, *fastpath) {
	n, f := newNetwork(b), newFastpath(b, 1)
	n.serveEcho()
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	return n, f
}

// BenchmarkRequest is a datagram to the VIP and back: two passages through user space.
func BenchmarkRequest(b *testing.B) {
	n, f := serving(b)
	c, err := n.dial(n.client, "udp", netip.AddrPortFrom(vips[0], toWeb))
	n.must(err)
	defer c.Close()
	n.must(c.SetDeadline(time.Now().Add(time.Minute)))
	p := make([]byte, 64)
	for b.Loop() {
		if _, err := c.Write(p); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(p); err != nil {
			b.Fatal(err)
		}
	}
	f.report(b)
}

// BenchmarkConnection is a TCP connection that asks once and closes.
func BenchmarkConnection(b *testing.B) {
	n, f := serving(b)
	n.in(n.client, func() {
		for b.Loop() {
			c, err := n.dial(nil, "tcp", netip.AddrPortFrom(vips[0], toWeb))
			n.must(err)
			n.must(talk(c, 64))
			c.Close()
		}
	})
	f.report(b)
}

// BenchmarkStream is one TCP stream to the backend, which sends everything back.
func BenchmarkStream(b *testing.B) {
	n, f := serving(b)
	c, err := n.dial(n.client, "tcp", netip.AddrPortFrom(vips[0], toWeb))
	n.must(err)
	defer c.Close()
	p := make([]byte, 1<<20)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		done := make(chan error)
		go func() { _, err := c.Write(p); done <- err }()
		_, err := io.ReadFull(c, make([]byte, len(p)))
		n.must(err)
		n.must(<-done)
	}
	f.report(b)
}

// report shows how often the worker woke up for the frames it moved.
func (f *fastpath) report(b *testing.B) {
	f.kill()
	c := f.totals()
	frames := float64(c.Events[counter.Received])
	b.ReportMetric(frames/float64(b.N), "frames/op")
	b.ReportMetric(frames/float64(c.Events[counter.Batches]), "frames/batch")
	b.ReportMetric(float64(c.Events[counter.Pauses])/float64(b.N), "pauses/op")
}
