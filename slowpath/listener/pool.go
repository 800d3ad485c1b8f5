package listener

import (
	"net"
	"sync"
	"sync/atomic"
)

// Pool bounds the connections of many listeners together, so that a flood at many ports
// does not use up the files of the process. When there is one too many, the oldest of the
// listener that has the most makes room: one that is flooded never costs the others
// anything. Its methods are safe for concurrent use.
type Pool struct {
	max  int
	open atomic.Int64

	mu      sync.Mutex
	members map[*Bounded]struct{}
}

// NewPool makes one for so many connections.
func NewPool(most int) *Pool { return &Pool{max: most, members: map[*Bounded]struct{}{}} }

// Bound wraps a listener so that at most so many of its connections are open, and its part
// of the pool's. It belongs to the pool until it is closed.
func (p *Pool) Bound(l net.Listener, most int) *Bounded {
	b := Bound(l, most)
	b.pool = p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members[b] = struct{}{}
	return b
}

// Open is the number of connections held now by all listeners.
func (p *Pool) Open() int { return int(p.open.Load()) }

// fullest is the oldest connection of the listener that has the most, when there is one too
// many; else nil. It walks over all listeners only then.
func (p *Pool) fullest() *connection {
	if p.Open() <= p.max {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var most *Bounded
	for b := range p.members {
		if most == nil || b.Open() > most.Open() {
			most = b
		}
	}
	if most == nil {
		return nil
	}
	return most.oldest()
}

func (p *Pool) leave(b *Bounded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, b)
}
