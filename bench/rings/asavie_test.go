package rings

import (
	"testing"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"
)

// asavie forwards with the rings of github.com/asavie/xdp, used as its documentation shows,
// with one addition: its Transmit makes one call, which takes 32 frames in copy mode, so
// that the forwarder calls again until all have left.
type asavie struct {
	socket *xdp.Socket
	batch  int
}

func newAsavie(b testing.TB, t *track, batch int) *asavie {
	b.Helper()
	xdp.DefaultSocketFlags = unix.XDP_COPY
	s, err := xdp.NewSocket(t.far.Attrs().Index, 0, &xdp.SocketOptions{
		NumFrames: frames, FrameSize: chunkSize,
		FillRingNumDescs: ringSize, CompletionRingNumDescs: ringSize,
		RxRingNumDescs: ringSize, TxRingNumDescs: ringSize,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	s.Fill(s.GetDescs(ringSize))
	return &asavie{socket: s, batch: batch}
}

func (a *asavie) fd() int { return a.socket.FD() }

func (a *asavie) received() int { return a.socket.NumReceived() }

func (a *asavie) forward(n int) error {
	s := a.socket
	for n > 0 {
		descs := s.Receive(a.batch)
		for i := range descs {
			swap(s.GetFrame(descs[i]))
		}
		s.Transmit(descs)
		for s.Complete(s.NumCompleted()); s.NumTransmitted() > 0; s.Complete(s.NumCompleted()) {
			s.Transmit(nil)
		}
		s.Fill(s.GetDescs(s.NumFreeFillSlots()))
		n -= len(descs)
	}
	return nil
}
