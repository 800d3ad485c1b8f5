package port

import (
	"errors"
	"fmt"
	"time"

	"lace-cni.io/lace/xdp/xsk"
)

// Sizes of an XSK port. A chunk holds a frame of the largest MTU that XDP without
// multi-buffer takes on a page; a ring holds what arrives while a worker is busy for a
// few milliseconds.
const (
	chunkSize = 4096
	ringSize  = 2048
	frames    = 2 * ringSize // half to receive into, half with the worker or on its way out
)

// XSK is a port on one AF_XDP socket with frame memory of its own, so that nothing is
// shared between two workers.
type XSK struct {
	umem   *xsk.Umem
	socket *xsk.Socket
	batch  []xsk.Frame
	stats  Stats
	fault  error // a frame was refused: a mistake in the accounts, reported by the next Flush
}

// OpenXSK binds a socket to a queue of a device in the network namespace of the calling
// thread. Frames arrive once Descriptor is in the XSKMAP of the device's XDP program.
func OpenXSK(device string, queue int) (*XSK, error) {
	umem, err := xsk.NewUmem(xsk.UmemConfig{Frames: frames, ChunkSize: chunkSize})
	if err != nil {
		return nil, fmt.Errorf("port %s queue %d: %w", device, queue, err)
	}
	s, err := xsk.Open(umem, xsk.Config{
		Device: device, Queue: queue, Mode: xsk.ModeAuto,
		Fill: ringSize, Receive: ringSize, Transmit: ringSize, Completion: ringSize,
	})
	if err != nil {
		return nil, fmt.Errorf("port %s queue %d: %w", device, queue, errors.Join(err, umem.Close()))
	}
	p := &XSK{umem: umem, socket: s, batch: make([]xsk.Frame, ringSize)}
	p.socket.Refill(ringSize)
	return p, nil
}

// Descriptor is the socket's file descriptor, for an XSKMAP.
func (p *XSK) Descriptor() int { return p.socket.FD() }

// Mode is the mode in force: copy or zero-copy.
func (p *XSK) Mode() string { return p.socket.Mode().String() }

// MaxFrame is the longest frame that can arrive, in bytes with its Ethernet header.
func (p *XSK) MaxFrame() int { return p.umem.MaxFrame() }

// Receive implements Port.
func (p *XSK) Receive(batch []Frame) int {
	n := p.socket.Receive(p.batch[:min(len(batch), len(p.batch))])
	for i, f := range p.batch[:n] {
		batch[i] = Frame{Bytes: p.umem.Bytes(f), Handle: f.Addr}
	}
	p.stats.Received += uint64(n)
	return n
}

// Take implements Port.
func (p *XSK) Take(batch []Frame) int {
	n := p.umem.Allocate(p.batch[:min(len(batch), len(p.batch))])
	for i, f := range p.batch[:n] {
		batch[i] = Frame{Bytes: p.umem.Bytes(f), Handle: f.Addr}
	}
	return n
}

// Transmit implements Port.
func (p *XSK) Transmit(batch []Frame) int {
	sent := 0
	for sent < len(batch) {
		part := batch[sent:min(len(batch), sent+len(p.batch))]
		n, err := p.socket.Transmit(p.descriptors(part))
		sent += n
		p.note(err)
		if n < len(part) {
			break
		}
	}
	p.stats.Transmitted += uint64(sent)
	p.stats.RingFull += uint64(len(batch) - sent)
	return sent
}

// Recycle implements Port.
func (p *XSK) Recycle(batch []Frame) {
	for len(batch) > 0 {
		n := min(len(batch), len(p.batch))
		_, err := p.umem.Release(p.descriptors(batch[:n]))
		p.note(err)
		batch = batch[n:]
	}
}

// descriptors turns frames into the socket's form, in the scratch batch.
func (p *XSK) descriptors(part []Frame) []xsk.Frame {
	for i := range part {
		p.batch[i] = xsk.Frame{Addr: part[i].Handle, Len: uint32(len(part[i].Bytes))}
	}
	return p.batch[:len(part)]
}

func (p *XSK) note(err error) {
	if err != nil && p.fault == nil {
		p.fault = err
	}
}

// Flush implements Port. A device that is set down is no error: frames wait in the ring
// until it is up again.
func (p *XSK) Flush() error {
	err := p.socket.Kick()
	p.socket.Complete()
	p.socket.Refill(ringSize)
	if errors.Is(err, xsk.ErrDown) {
		err = nil
	}
	return errors.Join(err, p.fault)
}

// Wait implements Port. While the device is down it waits for the whole time.
func (p *XSK) Wait(timeout time.Duration) error {
	p.socket.Refill(ringSize)
	start := time.Now()
	_, err := p.socket.Wait(timeout)
	if errors.Is(err, xsk.ErrDown) {
		time.Sleep(timeout - time.Since(start))
		return nil
	}
	return err
}

// Backlog implements Port.
func (p *XSK) Backlog() (waiting, room int) { return p.socket.Backlog(), ringSize }

// Stats implements Port; one system call.
func (p *XSK) Stats() Stats {
	st := p.stats
	k, _ := p.socket.Stats() // of a closed socket the last known
	st.Kicks = k.Kicks
	// In copy mode a frame that finds no chunk counts as dropped as well.
	st.Dropped = k.Kernel.Dropped + k.Kernel.ReceiveRingFull
	if p.socket.Mode() == xsk.ModeZeroCopy {
		st.Dropped += k.Kernel.FillRingEmpty
	}
	return st
}

// Conserved implements Port.
func (p *XSK) Conserved(held int) error {
	if c := p.umem.Census(); c.Held != held {
		return fmt.Errorf("port %s queue %d: %d frames are with the worker, which holds %d",
			p.socket.Device(), p.socket.Queue(), c.Held, held)
	}
	return p.umem.Conserved()
}

// Close implements Port. The queue is free again some 20 ms later.
func (p *XSK) Close() error { return errors.Join(p.socket.Close(), p.umem.Close()) }
