package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// Server echoes on one address, TCP and UDP, and says its name. Close ends it and
// resets the connections that are still open.
type Server struct {
	name string
	tcp  *net.TCPListener
	udp  *net.UDPConn

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	lost  int // segments of connections that are over
	done  sync.WaitGroup
}

// Listen starts a server called name on addr, for both protocols. Port 0 takes a free
// port of TCP and the same one of UDP; Addr tells which. An unspecified address listens
// on every address of its own family only.
func Listen(name string, addr netip.AddrPort) (*Server, error) {
	family := "4"
	if addr.Addr().Is6() {
		family = "6"
	}
	var lc net.ListenConfig
	tcp, err := lc.Listen(context.Background(), "tcp"+family, addr.String())
	if err != nil {
		return nil, fmt.Errorf("server %s cannot listen on %s/tcp: %w", name, addr, err)
	}
	s := &Server{name: name, tcp: tcp.(*net.TCPListener), conns: map[net.Conn]struct{}{}}
	udp, err := lc.ListenPacket(context.Background(), "udp"+family, s.Addr().String())
	if err != nil {
		tcp.Close()
		return nil, fmt.Errorf("server %s cannot listen on %s/udp: %w", name, s.Addr(), err)
	}
	s.udp = udp.(*net.UDPConn)
	s.done.Go(s.acceptAll)
	s.done.Go(s.answerDatagrams)
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort {
	return s.tcp.Addr().(*net.TCPAddr).AddrPort()
}

// Lost is how many TCP segments the server had to send again, over all its connections.
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lost
	for c := range s.conns {
		n += lost(c)
	}
	return n
}

// Close stops listening, resets open connections and waits for every goroutine.
func (s *Server) Close() error {
	err := errors.Join(s.tcp.Close(), s.udp.Close())
	s.mu.Lock()
	for c := range s.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
	return err
}

func (s *Server) acceptAll() {
	for {
		c, err := s.tcp.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.done.Go(func() { s.serve(c) })
	}
}

func (s *Server) serve(c *net.TCPConn) {
	defer func() {
		s.mu.Lock()
		s.lost += lost(c)
		delete(s.conns, c)
		s.mu.Unlock()
		c.Close()
	}()
	client := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	if _, err := c.Write(Greeting(s.name, unmap(client))); err != nil {
		return
	}
	// Not io.Copy from the connection itself: splice would hide the bytes from checksum
	// offload paths that ordinary servers take.
	buf := make([]byte, 32<<10)
	io.CopyBuffer(onlyWriter{c}, onlyReader{c}, buf)
}

type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

func (s *Server) answerDatagrams() {
	buf := make([]byte, 64<<10)
	for {
		n, client, err := s.udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error for an earlier answer
		}
		answer := append(Greeting(s.name, unmap(client)), buf[:n]...)
		if n >= 8 && binary.BigEndian.Uint64(buf) == shuffledSequence {
			// Without the right to, no answer shows it.
			_ = sendShuffled(s.Addr(), client, answer)
			continue
		}
		s.udp.WriteToUDPAddrPort(answer, client)
	}
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
