package load

import (
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// Server answers on one address: TCP and UDP on its port are echoed, and TCP on the next
// port is read and thrown away. Unlike the servers of a lab it says nothing of its own.
type Server struct {
	space *Space

	mu     sync.Mutex
	closed bool
	open   map[int]bool
	done   sync.WaitGroup
}

// Serve starts a server.
func Serve(s *Space, at netip.AddrPort) (*Server, error) {
	v := &Server{space: s, open: map[int]bool{}}
	err := s.Do(func() error {
		datagrams, err := listening(unix.SOCK_DGRAM, at)
		if err != nil {
			return err
		}
		v.run(datagrams, echoDatagrams)
		for _, l := range []struct {
			at    netip.AddrPort
			serve func(int)
		}{{at, echoStream}, {Discard(at), discardStream}} {
			fd, err := listening(unix.SOCK_STREAM, l.at)
			if err != nil {
				return err
			}
			v.run(fd, func(fd int) { v.accept(fd, l.serve) })
		}
		return nil
	})
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// Discard is the port of a server at which what comes is thrown away.
func Discard(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), a.Port()+1) }

// run serves a socket on a goroutine and closes it at the end.
func (v *Server) run(fd int, serve func(int)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		unix.Close(fd)
		return
	}
	v.open[fd] = true
	v.done.Go(func() {
		serve(fd)
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.open, fd)
		unix.Close(fd)
	})
}

// Close ends the server and its connections. Threads that block in a call come back, since
// a socket that was shut down has nothing to wait for.
func (v *Server) Close() error {
	v.mu.Lock()
	v.closed = true
	for fd := range v.open {
		unix.Shutdown(fd, unix.SHUT_RDWR)
	}
	v.mu.Unlock()
	v.done.Wait()
	return nil
}

func (v *Server) accept(fd int, serve func(int)) {
	for {
		var conn int
		err := again(func() (err error) {
			conn, _, err = unix.Accept4(fd, unix.SOCK_CLOEXEC)
			return err
		})
		if err != nil {
			return
		}
		v.run(conn, serve)
	}
}

func echoStream(fd int) {
	b := make([]byte, 16<<10)
	for {
		n, err := read(fd, b)
		if n == 0 || err != nil || writeAll(fd, b[:n]) != nil {
			return
		}
	}
}

func discardStream(fd int) {
	b := make([]byte, 256<<10)
	for {
		if n, err := read(fd, b); n == 0 || err != nil {
			return
		}
	}
}

func echoDatagrams(fd int) {
	b := make([]byte, 64<<10)
	for {
		n, from, err := unix.Recvfrom(fd, b, 0)
		switch {
		case err == unix.EINTR || err == unix.ECONNREFUSED: // an ICMP error for an earlier answer
			continue
		case err != nil || from == nil: // shut down
			return
		}
		unix.Sendto(fd, b[:n], 0, from)
	}
}
