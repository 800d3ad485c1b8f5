// Package rings runs Lace's fast path on the rings of github.com/asavie/xdp instead of its
// own: the same programs, trunk, pipeline and worker, so that the difference is the rings.
//
// It owns a port.Port and a process that puts it in place of the product's. It is for
// measurements only: it follows snapshots, but repairs nothing and reports nothing.
package rings

import (
	"fmt"
	"time"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/port"
)

// Sizes as the product's port has them.
const (
	chunkSize = 4096
	ringSize  = 2048
	frames    = 2 * ringSize
)

// Port is a port.Port on the library, used as its documentation shows, with one addition:
// one call of its Transmit takes 32 frames in copy mode, so that Flush calls until the
// kernel has taken all.
type Port struct {
	socket *xdp.Socket
	batch  []xdp.Desc
	stats  port.Stats
}

var _ port.Port = (*Port)(nil)

// Open binds a socket to a queue of a device in the network namespace of the calling thread.
func Open(device, queue int) (*Port, error) {
	xdp.DefaultSocketFlags = unix.XDP_COPY
	s, err := xdp.NewSocket(device, queue, &xdp.SocketOptions{
		NumFrames: frames, FrameSize: chunkSize,
		FillRingNumDescs: ringSize, CompletionRingNumDescs: ringSize,
		RxRingNumDescs: ringSize, TxRingNumDescs: ringSize,
	})
	if err != nil {
		return nil, fmt.Errorf("asavie/xdp socket on device %d queue %d: %w", device, queue, err)
	}
	p := &Port{socket: s}
	p.refill()
	return p, nil
}

// Descriptor is the socket's file descriptor, for an XSKMAP.
func (p *Port) Descriptor() int { return p.socket.FD() }

func (p *Port) refill() { p.socket.Fill(p.socket.GetDescs(p.socket.NumFreeFillSlots())) }

// Receive implements port.Port.
func (p *Port) Receive(batch []port.Frame) int {
	n := min(p.socket.NumReceived(), len(batch))
	if n == 0 {
		return 0
	}
	for i, d := range p.socket.Receive(n) {
		frame := p.socket.GetFrame(d)
		room := chunkSize - int(d.Addr%chunkSize)
		batch[i] = port.Frame{Bytes: frame[:len(frame):min(cap(frame), room)], Handle: d.Addr}
	}
	p.stats.Received += uint64(n)
	return n
}

// Take implements port.Port: nothing is measured that needs it.
func (p *Port) Take([]port.Frame) int { return 0 }

// Transmit implements port.Port.
func (p *Port) Transmit(batch []port.Frame) int {
	p.batch = p.batch[:0]
	for i := range batch {
		p.batch = append(p.batch, xdp.Desc{Addr: batch[i].Handle, Len: uint32(len(batch[i].Bytes))})
	}
	n := p.socket.Transmit(p.batch)
	p.stats.Transmitted += uint64(n)
	p.stats.RingFull += uint64(len(batch) - n)
	return n
}

// Recycle implements port.Port: the library finds frames that are in no ring by itself.
func (p *Port) Recycle([]port.Frame) {}

// Flush implements port.Port. Frames that have left may be complete much later, when their
// receiver has read them: nobody waits for that.
func (p *Port) Flush() error {
	for p.socket.NumFreeTxSlots() < ringSize {
		p.socket.Transmit(nil)
	}
	p.socket.Complete(p.socket.NumCompleted())
	p.refill()
	return nil
}

// Wait implements port.Port.
func (p *Port) Wait(timeout time.Duration) error {
	p.socket.Complete(p.socket.NumCompleted())
	_, _, err := p.socket.Poll(int(timeout / time.Millisecond))
	return err
}

// Stats implements port.Port.
func (p *Port) Stats() port.Stats { return p.stats }

// Conserved implements port.Port: the library keeps no accounts.
func (p *Port) Conserved(int) error { return nil }

// Close implements port.Port.
func (p *Port) Close() error { return p.socket.Close() }
