// Package listener bounds how many connections a server of the agent holds.
//
// It owns the list of open connections of one listener, or of a Pool of them, and closes
// the oldest when one too many comes, so that a flood of idle or slow clients never keeps a short question
// out. It must never read or write a connection.
//
// Cost: one lock for each connection that comes or goes, and a walk over at most max
// pointers when it goes.
package listener

import (
	"net"
	"slices"
	"sync"
)

// Bounded is a listener with a limit. Its methods are safe for concurrent use.
type Bounded struct {
	net.Listener
	max  int
	pool *Pool // nil: none

	mu   sync.Mutex
	open []*connection // oldest first
}

// Bound wraps a listener so that at most so many of its connections are open. The
// connections must be closed by whoever accepts them, as net/http does.
func Bound(l net.Listener, most int) *Bounded { return &Bounded{Listener: l, max: most} }

// Accept implements net.Listener.
func (b *Bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	held := &connection{Conn: c, of: b}
	if oldest := b.add(held); oldest != nil {
		oldest.Close()
	}
	if b.pool != nil {
		if oldest := b.pool.fullest(); oldest != nil {
			oldest.Close()
		}
	}
	return held, nil
}

// Close implements net.Listener. Connections that are open stay so, and are their owner's
// to close.
func (b *Bounded) Close() error {
	if b.pool != nil {
		b.pool.leave(b)
	}
	return b.Listener.Close()
}

// Open is the number of connections held now.
func (b *Bounded) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// add notes a connection and returns the one that has to make room.
func (b *Bounded) add(c *connection) (oldest *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) >= b.max {
		oldest = b.open[0]
	}
	b.open = append(b.open, c)
	if b.pool != nil {
		b.pool.open.Add(1)
	}
	return oldest
}

// oldest is the connection that was accepted first of those that are open; nil: none is.
func (b *Bounded) oldest() *connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) == 0 {
		return nil
	}
	return b.open[0]
}

func (b *Bounded) remove(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.open)
	b.open = slices.DeleteFunc(b.open, func(held *connection) bool { return held == c })
	if b.pool != nil {
		b.pool.open.Add(int64(len(b.open) - before))
	}
}

// connection leaves the listener's list when it is closed.
type connection struct {
	net.Conn
	of *Bounded
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}
