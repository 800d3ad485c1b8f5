package kubetest

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Fabric is the network between a node and API servers, in memory, so that a bubble of
// testing/synctest can hold it. Connections can be refused, cut, or held up so that
// nothing comes through in either direction.
type Fabric struct {
	timeout time.Duration // of making a connection
	hosts   map[string]*Host
}

// Host is one server's place in a Fabric.
type Host struct {
	accept chan net.Conn
	mu     sync.Mutex
	way    Way
	change chan struct{} // closed when the way changes
	conns  []net.Conn
}

// Way is what happens to packets of a host.
type Way int

const (
	Open Way = iota
	Refusing
	Holding
)

// NewFabric has a host for each name, which is host:port. A connection that is not made
// in time is given up.
func NewFabric(timeout time.Duration, names ...string) *Fabric {
	f := &Fabric{timeout: timeout, hosts: make(map[string]*Host)}
	for _, n := range names {
		f.hosts[n] = &Host{accept: make(chan net.Conn), change: make(chan struct{})}
	}
	return f
}

// Host finds a host by its name.
func (f *Fabric) Host(name string) *Host { return f.hosts[name] }

// Set changes the way; connections are cut when they would be by a machine that dies.
func (h *Host) Set(w Way) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.way = w
	close(h.change)
	h.change = make(chan struct{})
	if w == Refusing {
		h.cut()
	}
}

// Cut ends every connection, and takes new ones.
func (h *Host) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut()
}

func (h *Host) cut() {
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

// passable waits until packets come through; false: the connection is closed.
func (h *Host) passable(closed <-chan struct{}) bool {
	for {
		h.mu.Lock()
		w, change := h.way, h.change
		h.mu.Unlock()
		if w != Holding {
			return true
		}
		select {
		case <-change:
		case <-closed:
			return false
		}
	}
}

// Dial is for http.Transport.
func (f *Fabric) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	h := f.hosts[addr]
	for {
		h.mu.Lock()
		w, change := h.way, h.change
		h.mu.Unlock()
		switch w {
		case Refusing:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		case Open:
			return h.connect(ctx)
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
	}
}

func (h *Host) connect(ctx context.Context) (net.Conn, error) {
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
	go h.carry(farWire, nearWire, closed, end)
	go h.carry(nearWire, farWire, closed, end)
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

// carry moves bytes one way until either end closes. What is on its way does not keep the
// sender, as in the kernel's buffers.
func (h *Host) carry(to, from net.Conn, closed <-chan struct{}, end func()) {
	defer end()
	wire := make(chan []byte, 1<<12)
	go func() {
		defer close(wire)
		for {
			b := make([]byte, 1<<12)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			wire <- b[:n]
		}
	}()
	for b := range wire {
		if !h.passable(closed) {
			continue
		}
		if _, err := to.Write(b); err != nil {
			end()
		}
	}
}

// Listen hands the host's connections to an http.Server.
func (h *Host) Listen() net.Listener { return &listener{h, make(chan struct{})} }

type listener struct {
	*Host
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
