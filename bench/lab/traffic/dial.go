package traffic

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Request is one attempt to be answered by a Server.
type Request struct {
	Network string         // "tcp" or "udp"
	To      netip.AddrPort // whom to call
	From    netip.AddrPort // local address and port; zero: any address, and any port (udp: the next)
	Bytes   int            // payload to be echoed; 0: the greeting is enough
	Timeout time.Duration  // for the whole attempt; 0: 3 seconds
	Shuffle bool           // udp: question and answer travel in fragments, shuffled and some of them twice; needs CAP_NET_RAW
}

// Answer is what became of one Request.
type Answer struct {
	Outcome Outcome
	Server  string         // the server's name for itself
	Client  netip.AddrPort // the client's address as the server saw it
	Local   netip.AddrPort // the client's own address
	Start   time.Time
	Took    time.Duration // until the last byte, or until it failed
	Error   string        // text of the failure; empty when OK
}

func (a Answer) String() string {
	if a.Outcome == OK {
		return fmt.Sprintf("%s answered in %s", a.Server, a.Took.Round(10*time.Microsecond))
	}
	return fmt.Sprintf("%s after %s (%s)", a.Outcome, a.Took.Round(10*time.Microsecond), a.Error)
}

// ended stamps the answer with how the attempt ended.
func (a Answer) ended(err error) Answer {
	a.Took = time.Since(a.Start)
	a.Outcome = outcomeOf(err)
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// defaultTimeout of an attempt: one lost SYN (retransmitted after one second) is
// survived and visible in Took; two are a failure.
const defaultTimeout = 3 * time.Second

// Validate reports a request that cannot be carried out.
func (r *Request) Validate() error {
	if r.Network != "tcp" && r.Network != "udp" {
		return fmt.Errorf("network %q: say tcp or udp", r.Network)
	}
	if !r.To.IsValid() || r.To.Port() == 0 {
		return fmt.Errorf("target %s: an address and a port are needed", r.To)
	}
	if r.Bytes < 0 || (r.Network == "udp" && r.Bytes > 60000) {
		return fmt.Errorf("payload of %d bytes: say 0 to 60000 for udp", r.Bytes)
	}
	if r.Shuffle && r.Network != "udp" {
		return fmt.Errorf("shuffled fragments of %s: say udp", r.Network)
	}
	return nil
}

// Connect opens a connection for a request, with the request's patience as deadline. The
// usual one is Sockets.
type Connect func(ctx context.Context, r *Request) (net.Conn, error)

// Dial makes one attempt with ordinary sockets. It returns when the attempt is decided, or
// ctx ends.
func Dial(ctx context.Context, r Request) Answer { return DialBy(ctx, Sockets, r) }

// DialBy makes one attempt.
func DialBy(ctx context.Context, connect Connect, r Request) Answer {
	a := Answer{Start: time.Now()}
	if err := r.Validate(); err != nil {
		return a.ended(err)
	}
	conn, err := connect(ctx, &r)
	if err != nil {
		return a.ended(err)
	}
	defer conn.Close()
	a.Local = localAddr(conn)
	if r.Network == "udp" {
		sequence := uint64(0)
		if r.Shuffle {
			conn, sequence = shuffle(conn, r.To), shuffledSequence
		}
		a.Server, a.Client, err = askUDP(conn, r.Bytes, sequence)
	} else {
		a.Server, a.Client, err = askTCP(conn, r.Bytes)
	}
	return a.ended(err)
}

// Patience is the time that the request may take.
func (r *Request) Patience() time.Duration {
	if r.Timeout == 0 {
		return defaultTimeout
	}
	return r.Timeout
}

// Sockets opens an ordinary socket of the network namespace.
func Sockets(ctx context.Context, r *Request) (net.Conn, error) {
	deadline := time.Now().Add(r.Patience())
	d := net.Dialer{Deadline: deadline, KeepAlive: -1}
	conn, err := r.dial(ctx, d)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(deadline)
}

func (r *Request) dial(ctx context.Context, d net.Dialer) (net.Conn, error) {
	switch {
	case r.From.Addr().IsValid() || r.From.Port() != 0:
		d.LocalAddr = fromAddr(r)
		d.Control = reuseAddr
	case r.Network == "udp":
		return dialUDP(ctx, d, r.To.String())
	}
	return d.DialContext(ctx, r.Network, r.To.String())
}

func fromAddr(r *Request) net.Addr {
	addr := r.From.Addr()
	if !addr.IsValid() {
		addr = netip.IPv4Unspecified()
		if r.To.Addr().Is6() {
			addr = netip.IPv6Unspecified()
		}
	}
	from := netip.AddrPortFrom(addr, r.From.Port())
	if r.Network == "udp" {
		return net.UDPAddrFromAddrPort(from)
	}
	return net.TCPAddrFromAddrPort(from)
}

// reuseAddr lets one local port call several targets at once.
func reuseAddr(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	})
	if err != nil {
		return err
	}
	return failed
}

func localAddr(c net.Conn) netip.AddrPort {
	switch a := c.LocalAddr().(type) {
	case *net.TCPAddr:
		return unmap(a.AddrPort())
	case *net.UDPAddr:
		return unmap(a.AddrPort())
	}
	return netip.AddrPort{}
}

func askTCP(c net.Conn, size int) (name string, client netip.AddrPort, err error) {
	name, client, err = readGreeting(c)
	if err != nil || size == 0 {
		return name, client, err
	}
	return name, client, echoTCP(c, size, 0)
}

// echoTCP sends size bytes and compares what comes back while it sends, so that more
// than the socket buffers hold can be asked for.
func echoTCP(c net.Conn, size int, offset uint64) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(onlyWriter{c}, io.LimitReader(&patternReader{offset}, int64(size)))
		sent <- err
	}()
	got, want := make([]byte, 32<<10), make([]byte, 32<<10)
	for done := 0; done < size; {
		n := min(size-done, len(got))
		n, err := io.ReadAtLeast(c, got[:n], 1)
		if err != nil {
			c.SetWriteDeadline(time.Unix(1, 0)) // release the sender
			<-sent
			return err
		}
		pattern(want[:n], offset+uint64(done))
		if !bytes.Equal(got[:n], want[:n]) {
			c.SetWriteDeadline(time.Unix(1, 0))
			<-sent
			return fmt.Errorf("%w: within the %d bytes behind offset %d", errCorrupt, n, offset+uint64(done))
		}
		done += n
	}
	return <-sent
}

// patternReader is the endless pattern from an offset on.
type patternReader struct{ offset uint64 }

func (r *patternReader) Read(b []byte) (int, error) {
	pattern(b, r.offset)
	r.offset += uint64(len(b))
	return len(b), nil
}
