package kube

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
)

// fabric is the network between a node and API servers, in memory. Connections can be
// refused, cut, or held up so that nothing comes through in either direction.
type fabric struct {
	hosts map[string]*host
}

type host struct {
	accept chan net.Conn
	mu     sync.Mutex
	way    way
	change chan struct{} // closed when the way changes
	conns  []net.Conn
}

// way is what happens to packets of a host.
type way int

const (
	open way = iota
	refusing
	holding
)

func newFabric(names ...string) *fabric {
	f := &fabric{hosts: make(map[string]*host)}
	for _, n := range names {
		f.hosts[n] = &host{accept: make(chan net.Conn), change: make(chan struct{})}
	}
	return f
}

// set changes the way; connections are cut when they would be by a machine that dies.
func (h *host) set(w way) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.way = w
	close(h.change)
	h.change = make(chan struct{})
	if w == refusing {
		h.cutLocked()
	}
}

func (h *host) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cutLocked()
}

func (h *host) cutLocked() {
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

// passable waits until packets come through; false: the connection is closed.
func (h *host) passable(closed <-chan struct{}) bool {
	for {
		h.mu.Lock()
		w, change := h.way, h.change
		h.mu.Unlock()
		if w != holding {
			return true
		}
		select {
		case <-change:
		case <-closed:
			return false
		}
	}
}

// dial is for http.Transport.
func (f *fabric) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	h := f.hosts[addr]
	for {
		h.mu.Lock()
		w, change := h.way, h.change
		h.mu.Unlock()
		switch w {
		case refusing:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		case open:
			return h.connect(ctx)
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
	}
}

func (h *host) connect(ctx context.Context) (net.Conn, error) {
	near, nearWire := net.Pipe()
	far, farWire := net.Pipe()
	closed := make(chan struct{})
	var once sync.Once
	end := func() {
		once.Do(func() {
			close(closed)
			for _, c := range []net.Conn{near, nearWire, far, farWire} {
				c.Close()
			}
		})
	}
	// What is on its way does not keep the sender, as in the kernel's buffers.
	carry := func(to, from net.Conn) {
		defer end()
		way := make(chan []byte, 1<<12)
		go func() {
			defer close(way)
			for {
				b := make([]byte, 1<<12)
				n, err := from.Read(b)
				if err != nil {
					return
				}
				way <- b[:n]
			}
		}()
		for b := range way {
			if !h.passable(closed) {
				continue
			}
			if _, err := to.Write(b); err != nil {
				end()
			}
		}
	}
	go carry(farWire, nearWire)
	go carry(nearWire, farWire)
	select {
	case h.accept <- far:
	case <-ctx.Done():
		end()
		return nil, ctx.Err()
	}
	h.mu.Lock()
	h.conns = append(h.conns, near, far)
	h.mu.Unlock()
	return near, nil
}

// listener hands a host's connections to a server.
type listener struct {
	*host
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { close(l.closed); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6443} }
