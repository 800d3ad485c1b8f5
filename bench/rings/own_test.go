package rings

import (
	"testing"

	"lace-cni.io/lace/xdp/xsk"
)

// own forwards with Lace's rings.
type own struct {
	umem   *xsk.Umem
	socket *xsk.Socket
	batch  []xsk.Frame
}

func newOwn(b testing.TB, t *track, batch int) *own {
	b.Helper()
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: frames, ChunkSize: chunkSize})
	if err != nil {
		b.Fatal(err)
	}
	s, err := xsk.Open(u, xsk.Config{Device: t.far.Attrs().Name, Fill: ringSize, Receive: ringSize, Transmit: ringSize, Completion: ringSize})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := u.Conserved(); err != nil {
			b.Error(err)
		}
		if err := u.Close(); err != nil {
			b.Error(err)
		}
	})
	s.Refill(ringSize)
	return &own{umem: u, socket: s, batch: make([]xsk.Frame, batch)}
}

func (o *own) fd() int { return o.socket.FD() }

func (o *own) received() int { return o.umem.Census().Received }

func (o *own) forward(n int) error {
	for n > 0 {
		got := o.socket.Receive(o.batch)
		for i := range o.batch[:got] {
			swap(o.umem.Bytes(o.batch[i]))
		}
		if _, err := o.socket.Transmit(o.batch[:got]); err != nil {
			return err
		}
		if err := o.socket.Kick(); err != nil {
			return err
		}
		o.socket.Complete()
		o.socket.Refill(ringSize)
		n -= got
	}
	return nil
}
