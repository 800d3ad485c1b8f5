package port

import (
	"fmt"
	"sync"
	"time"
)

// Memory is a port without a kernel: a bounded set of frames that go round through two
// rings. The worker's side is Port; the wire's side is Deliver and Collect, which may be
// called from any goroutine.
type Memory struct {
	frames [][]byte // all frames, by handle
	size   int

	mu       sync.Mutex
	free     []uint64
	arrived  ring // delivered, not yet received
	leaving  ring // transmitted, not yet collected
	stats    Stats
	inWorker int
	closed   bool
	wake     chan struct{} // holds a token when something arrived since the last Wait
	left     chan struct{} // holds a token when something was transmitted since the last look
}

// NewMemory makes a port of so many frames of so many bytes each. Either ring can hold
// all of them.
func NewMemory(frames, size int) (*Memory, error) {
	if frames < 1 || size < 64 {
		return nil, fmt.Errorf("memory port of %d frames of %d bytes: want at least 1 frame of 64 bytes", frames, size)
	}
	m := &Memory{
		frames: make([][]byte, frames), size: size, free: make([]uint64, frames),
		arrived: newRing(frames), leaving: newRing(frames),
		wake: make(chan struct{}, 1), left: make(chan struct{}, 1),
	}
	block := make([]byte, frames*size)
	for i := range m.frames {
		m.frames[i] = block[i*size : (i+1)*size : (i+1)*size]
		m.free[i] = uint64(i)
	}
	return m, nil
}

// Deliver puts a copy of one frame before the worker, as if it had come in. It reports
// false, and counts the frame as dropped, when no frame is free, the frame is longer
// than a frame of this port or the port is closed.
func (m *Memory) Deliver(frame []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.free) == 0 || len(frame) > m.size {
		m.stats.Dropped++
		return false
	}
	h := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	n := copy(m.frames[h], frame)
	m.arrived.push(Frame{Bytes: m.frames[h][:n], Handle: h})
	knock(m.wake)
	return true
}

// Left delivers a token when the worker has sent something since the last token was
// taken: wait for it, then Collect.
func (m *Memory) Left() <-chan struct{} { return m.left }

// Collect calls take for each frame that the worker has sent, oldest first, and returns
// how many there were. The bytes are valid during the call only. take must not call
// methods of m.
func (m *Memory) Collect(take func(frame []byte)) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for {
		f, ok := m.leaving.pop()
		if !ok {
			return n
		}
		take(f.Bytes)
		m.free = append(m.free, f.Handle)
		n++
	}
}

// Receive implements Port.
func (m *Memory) Receive(batch []Frame) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for n < len(batch) {
		f, ok := m.arrived.pop()
		if !ok {
			break
		}
		batch[n] = f
		n++
	}
	m.inWorker += n
	m.stats.Received += uint64(n)
	return n
}

// Take implements Port.
func (m *Memory) Take(batch []Frame) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(batch), len(m.free))
	for i := range batch[:n] {
		last := len(m.free) - 1
		h := m.free[last]
		m.free = m.free[:last]
		batch[i] = Frame{Bytes: m.frames[h][:0], Handle: h}
	}
	m.inWorker += n
	return n
}

// Transmit implements Port. It takes every frame: the ring has room for all there are.
func (m *Memory) Transmit(batch []Frame) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for n < len(batch) && m.leaving.push(batch[n]) {
		n++
	}
	m.inWorker -= n
	m.stats.Transmitted += uint64(n)
	m.stats.RingFull += uint64(len(batch) - n)
	if n > 0 {
		knock(m.left)
	}
	return n
}

// Recycle implements Port.
func (m *Memory) Recycle(batch []Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range batch {
		m.free = append(m.free, batch[i].Handle)
	}
	m.inWorker -= len(batch)
}

// Flush implements Port; there is nothing to do.
func (m *Memory) Flush() error { return nil }

// Wait implements Port.
func (m *Memory) Wait(timeout time.Duration) error {
	m.mu.Lock()
	ready := m.arrived.len() > 0
	m.mu.Unlock()
	if ready || timeout <= 0 {
		return nil
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-m.wake:
	case <-t.C:
	}
	return nil
}

// Backlog implements Port.
func (m *Memory) Backlog() (waiting, room int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrived.len(), len(m.frames)
}

// Stats implements Port.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Conserved implements Port.
func (m *Memory) Conserved(held int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inWorker != held {
		return fmt.Errorf("memory port: %d frames are with the worker, which holds %d", m.inWorker, held)
	}
	if sum := len(m.free) + m.arrived.len() + held + m.leaving.len(); sum != len(m.frames) {
		return fmt.Errorf("memory port: free %d + arrived %d + held %d + leaving %d = %d, want %d frames",
			len(m.free), m.arrived.len(), held, m.leaving.len(), sum, len(m.frames))
	}
	return m.distinct()
}

// distinct finds a frame that is in two places, which the sum alone does not show.
func (m *Memory) distinct() error {
	seen := make(map[uint64]bool, len(m.frames))
	note := func(h uint64) error {
		if seen[h] {
			return fmt.Errorf("memory port: frame %d is in two places", h)
		}
		seen[h] = true
		return nil
	}
	for _, h := range m.free {
		if err := note(h); err != nil {
			return err
		}
	}
	for _, r := range []*ring{&m.arrived, &m.leaving} {
		for i := range r.len() {
			if err := note(r.at(i).Handle); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close implements Port. Frames may still be collected afterwards.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	knock(m.wake)
	return nil
}

// knock leaves a token unless one lies there already.
func knock(door chan<- struct{}) {
	select {
	case door <- struct{}{}:
	default:
	}
}
