package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/packet"
)

// retransmit is how long a segment waits for its acknowledgement before it is sent again.
const retransmit = 50 * time.Millisecond

// segmentSize is the most payload of one segment.
const segmentSize = 1200

// conn is one end of a TCP connection; it implements net.Conn. Segments are processed as
// they arrive; readers and writers wait for what they change.
type conn struct {
	host *Host
	ends ends

	mu       sync.Mutex
	sent     uint32 // next byte to send
	acked    uint32 // first byte not acknowledged
	received uint32 // next byte expected; 0: nothing has come yet
	buffer   []byte // received and not yet read
	ended    bool   // the other end has no more to say
	failed   error
	read     time.Time // deadlines; zero: none
	write    time.Time
	changed  chan struct{} // closed at the next change of anything above
	writing  sync.Mutex    // one segment is under way at a time
}

func newConn(h *Host, e ends) *conn {
	first := uint32(time.Now().UnixNano())
	return &conn{host: h, ends: e, sent: first, acked: first, changed: make(chan struct{})}
}

// dial opens a connection.
func (h *Host) dial(ctx context.Context, remote netip.AddrPort, deadline time.Time) (*conn, error) {
	h.mu.Lock()
	c := newConn(h, h.from(remote))
	h.conns[c.ends] = c
	h.mu.Unlock()
	c.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { c.fail(ctx.Err()) })
	defer stop()
	if err := c.send(packet.FlagSYN, nil); err != nil {
		h.forget(c)
		return nil, err
	}
	return c, nil
}

// serverPatience is how long a server waits for a client that has gone silent.
const serverPatience = time.Minute

// serve is the life of a server's end: greeting, then an echo of all that comes.
func (c *conn) serve(name string) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(serverPatience))
	if c.send(packet.FlagSYN|packet.FlagACK, nil) != nil {
		return
	}
	if _, err := c.Write(greeting(name, c.ends.remote)); err != nil {
		return
	}
	b := make([]byte, segmentSize)
	for {
		c.SetDeadline(time.Now().Add(serverPatience))
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

// Write sends b and returns when all of it is acknowledged.
func (c *conn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		size := min(len(b)-n, segmentSize)
		if err := c.send(packet.FlagPSH|packet.FlagACK, b[n:n+size]); err != nil {
			return n, err
		}
		n += size
	}
	return n, nil
}

// send sends one segment until it is acknowledged.
func (c *conn) send(flags uint8, payload []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	size := uint32(len(payload))
	if flags&(packet.FlagSYN|packet.FlagFIN) != 0 {
		size++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.sent
	c.sent += size
	for {
		c.emit(flags, first, payload)
		err := c.wait(retransmit, &c.write, func() bool { return int32(c.acked-c.sent) >= 0 })
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// Read returns what has arrived, at least one byte; io.EOF when the other end has closed.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		err := c.wait(time.Hour, &c.read, func() bool { return len(c.buffer) > 0 || c.ended })
		if len(c.buffer) > 0 {
			n := copy(b, c.buffer)
			c.buffer = c.buffer[n:]
			return n, nil
		}
		if err == nil {
			return 0, io.EOF
		}
		if !errors.Is(err, errAgain) {
			return 0, err
		}
	}
}

// Close says the end, waits a little for the other's, and forgets the connection.
func (c *conn) Close() error {
	now := time.Now()
	c.SetDeadline(now.Add(4 * retransmit))
	if c.send(packet.FlagFIN|packet.FlagACK, nil) == nil {
		c.mu.Lock()
		c.wait(4*retransmit, &c.read, func() bool { return c.ended })
		c.mu.Unlock()
	}
	c.host.forget(c)
	return nil
}

// errAgain ends a wait that may be repeated.
var errAgain = errors.New("nothing yet")

// wait gives up the lock until done, an error of the connection, or the deadline, which
// may move meanwhile; errAgain after a while.
func (c *conn) wait(while time.Duration, deadline *time.Time, done func() bool) error {
	end := time.Now().Add(while)
	for {
		switch {
		case done():
			return nil
		case c.failed != nil:
			return c.failed
		case !deadline.IsZero() && !time.Now().Before(*deadline):
			return os.ErrDeadlineExceeded
		case !time.Now().Before(end):
			return errAgain
		}
		until := end
		if !deadline.IsZero() && deadline.Before(until) {
			until = *deadline
		}
		c.sleep(time.Until(until))
	}
}

// sleep gives up the lock until something changes or d is over.
func (c *conn) sleep(d time.Duration) {
	changed := c.changed
	c.mu.Unlock()
	defer c.mu.Lock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	}
}

// touch wakes everybody who waits; the caller holds the lock.
func (c *conn) touch() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	c.touch()
}

// arrive processes one segment (RFC 9293, section 3.10.7, as far as stop and wait needs).
func (c *conn) arrive(s Segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.touch()
	if s.Flags&packet.FlagRST != 0 {
		c.failed = unix.ECONNRESET
		if c.received == 0 {
			c.failed = unix.ECONNREFUSED
		}
		return
	}
	if s.Flags&packet.FlagACK != 0 {
		if int32(s.Ack-c.sent) > 0 {
			c.failed = errors.New("an acknowledgement of bytes that were never sent")
			return
		}
		if int32(s.Ack-c.acked) > 0 {
			c.acked = s.Ack
		}
	}
	c.accept(s)
}

// accept takes what is next in order and acknowledges whatever needs it.
func (c *conn) accept(s Segment) {
	switch {
	case s.Flags&packet.FlagSYN != 0 && c.received == 0:
		c.received = s.Seq + 1
	case s.Flags&packet.FlagSYN != 0:
	case len(s.Payload) == 0 && s.Flags&packet.FlagFIN == 0:
		return
	case s.Seq == c.received:
		c.buffer = append(c.buffer, s.Payload...)
		c.received += uint32(len(s.Payload))
		if s.Flags&packet.FlagFIN != 0 {
			c.received++
			c.ended = true
		}
	}
	c.emit(packet.FlagACK, c.sent, nil)
}

// emit sends one segment once.
func (c *conn) emit(flags uint8, seq uint32, payload []byte) {
	s := Segment{Src: c.ends.local, Dst: c.ends.remote, Protocol: packet.ProtocolTCP,
		Flags: flags, Seq: seq, Payload: payload}
	if flags&packet.FlagACK != 0 {
		s.Ack = c.received
	}
	c.host.carry(c.host, s.Frame())
}

func (c *conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.ends.local) }
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.ends.remote) }

func (c *conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	c.touch()
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	c.touch()
	return nil
}
