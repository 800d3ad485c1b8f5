package health

import (
	"net"
	"sync"
)

// bounded holds at most so many connections. When one more comes, the oldest is closed:
// a flood of idle clients must not keep a probe out.
type bounded struct {
	net.Listener
	mu   sync.Mutex
	open []*connection // oldest first
	max  int
}

func newBounded(l net.Listener, most int) *bounded { return &bounded{Listener: l, max: most} }

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	held := &connection{Conn: c, of: b}
	if oldest := b.add(held); oldest != nil {
		oldest.Close()
	}
	return held, nil
}

// add notes a connection and returns the one that has to make room.
func (b *bounded) add(c *connection) (oldest *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) >= b.max {
		oldest = b.open[0]
	}
	b.open = append(b.open, c)
	return oldest
}

func (b *bounded) remove(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.open {
		if b.open[i] == c {
			b.open = append(b.open[:i], b.open[i+1:]...)
			return
		}
	}
}

// connection leaves the listener's list when it is closed.
type connection struct {
	net.Conn
	of *bounded
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}
