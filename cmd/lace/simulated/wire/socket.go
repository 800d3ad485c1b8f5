package wire

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/packet"
)

// greeting is how every server of a lab begins.
func greeting(name string, client netip.AddrPort) []byte { return traffic.Greeting(name, client) }

// Connect opens a connection from the host: traffic.Connect over the simulated network.
func (h *Host) Connect(ctx context.Context, r *traffic.Request) (net.Conn, error) {
	deadline := time.Now().Add(r.Patience())
	if r.From.IsValid() {
		return nil, fmt.Errorf("simulated hosts choose the client's address themselves, not %s", r.From)
	}
	if r.Network == "udp" {
		s := h.open(r.To)
		s.SetDeadline(deadline)
		return s, nil
	}
	c, err := h.dial(ctx, r.To, deadline)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// socket is a connected UDP socket; it implements net.Conn.
type socket struct {
	host *Host
	ends ends
	in   chan Segment

	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{} // closed when the deadline is set anew
}

// backlog is how many datagrams wait for a slow reader.
const backlog = 16

func (h *Host) open(remote netip.AddrPort) *socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &socket{host: h, ends: h.from(remote), in: make(chan Segment, backlog), moved: make(chan struct{})}
	h.sockets[s.ends] = s.in
	return s
}

func (s *socket) Write(b []byte) (int, error) {
	out := Segment{Src: s.ends.local, Dst: s.ends.remote, Protocol: packet.ProtocolUDP, Payload: b}
	s.host.carry(s.host, out.Frame())
	return len(b), nil
}

// Read returns one datagram, cut to the length of b.
func (s *socket) Read(b []byte) (int, error) {
	for {
		s.mu.Lock()
		deadline, moved := s.deadline, s.moved
		s.mu.Unlock()
		t := time.NewTimer(time.Until(deadline))
		select {
		case in := <-s.in:
			t.Stop()
			if in.Unreachable {
				return 0, unix.ECONNREFUSED
			}
			return copy(b, in.Payload), nil
		case <-t.C:
			if !deadline.IsZero() {
				return 0, os.ErrDeadlineExceeded
			}
		case <-moved:
			t.Stop()
		}
	}
}

func (s *socket) Close() error {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	delete(s.host.sockets, s.ends)
	return nil
}

func (s *socket) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

func (s *socket) SetReadDeadline(t time.Time) error  { return s.SetDeadline(t) }
func (s *socket) SetWriteDeadline(t time.Time) error { return nil } // writing never waits

func (s *socket) LocalAddr() net.Addr  { return net.UDPAddrFromAddrPort(s.ends.local) }
func (s *socket) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(s.ends.remote) }
