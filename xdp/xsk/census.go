package xsk

import "fmt"

// Census counts the chunks of a Umem by place. Their sum is Total as long as no chunk was
// lost or counted twice.
type Census struct {
	Free       int // in the pool
	Held       int // in the owner's hands, received or allocated
	Fill       int // given to the kernel to receive into, nothing received yet
	Received   int // in an RX ring, not yet taken by Receive
	Transmit   int // given to the kernel to send, not yet sent
	Completion int // in a completion ring, not yet taken by Complete
	Withheld   int // given to a socket that was closed while its device could still use them
	Total      int // chunks of the Umem
}

// Sum adds up all places.
func (c Census) Sum() int {
	return c.Free + c.Held + c.Fill + c.Received + c.Transmit + c.Completion + c.Withheld
}

// Census counts from the running totals and the rings' indexes: a few loads per socket, no
// system call. For the owner only. The kernel works on meanwhile, so that a frame may be
// seen in Fill that is in Received a moment later, but never in both.
func (u *Umem) Census() Census {
	c := Census{Free: len(u.pool), Held: u.held, Withheld: u.withheld, Total: len(u.where)}
	for _, s := range u.sockets {
		if s == nil {
			continue
		}
		received := s.rx.ready(int(s.rx.size))
		done := s.completion.ready(int(s.completion.size))
		c.Received += received
		c.Fill += s.filled - received
		c.Completion += done
		c.Transmit += s.sending - done
	}
	return c
}

// Conserved checks that every chunk is in exactly one place, and that three independent
// accounts agree: the running totals, the record of each chunk, and the rings' own indexes.
// The error names the first account that differs. It walks all chunks (about 6 ns each) and
// allocates; the owner may call it at any time.
func (u *Umem) Conserved() error {
	c := u.Census()
	if c.Sum() != c.Total {
		return fmt.Errorf("xsk: frames not conserved: places add up to %d, the memory has %d: %+v", c.Sum(), c.Total, c)
	}
	if err := u.poolIsSound(); err != nil {
		return err
	}
	filled, sending := make([]int, len(u.sockets)), make([]int, len(u.sockets))
	var seen [withheld + 1]int
	for i, w := range u.where {
		p, slot := w.place(), w.socket()
		if p > withheld || slot != 0 && (slot >= len(u.sockets) || p != fill && p != tx) {
			return fmt.Errorf("xsk: frames not conserved: chunk %d has the unknown place %d of socket %d", i, p, slot)
		}
		seen[p]++
		switch p {
		case fill:
			filled[slot]++
		case tx:
			sending[slot]++
		}
	}
	if seen[free] != c.Free || seen[held] != c.Held || seen[withheld] != c.Withheld {
		return fmt.Errorf("xsk: frames not conserved: the record has %d free, %d held, %d withheld; the totals say %+v", seen[free], seen[held], seen[withheld], c)
	}
	for i, s := range u.sockets {
		if err := s.agrees(filled[i], sending[i]); err != nil {
			return err
		}
	}
	return nil
}

// poolIsSound checks that the pool holds free chunks only, and none twice.
func (u *Umem) poolIsSound() error {
	seen := make([]bool, len(u.where))
	for _, i := range u.pool {
		if int(i) >= len(seen) || seen[i] || u.where[i].place() != free {
			return fmt.Errorf("xsk: frames not conserved: chunk %d is in the pool wrongly or twice", i)
		}
		seen[i] = true
	}
	return nil
}

// agrees compares the record's counts of chunks that s was given with its own totals and
// with its rings.
func (s *Socket) agrees(filled, sending int) error {
	if s == nil {
		if filled != 0 || sending != 0 {
			return fmt.Errorf("xsk: frames not conserved: %d chunks to fill and %d to send belong to a closed socket", filled, sending)
		}
		return nil
	}
	if filled != s.filled || sending != s.sending {
		return fmt.Errorf("xsk: frames not conserved on %s queue %d: the record has %d to fill and %d to send, the totals %d and %d",
			s.device, s.queue, filled, sending, s.filled, s.sending)
	}
	for name, r := range map[string]*ring{"fill": &s.fill.ring, "RX": &s.rx.ring, "TX": &s.tx.ring, "completion": &s.completion.ring} {
		if !r.sound() {
			return fmt.Errorf("xsk: frames not conserved on %s queue %d: the %s ring's indexes are %d apart, it has %d entries",
				s.device, s.queue, name, r.producer.Load()-r.consumer.Load(), r.size)
		}
	}
	if n := s.fill.unconsumed() + s.rx.ready(int(s.rx.size)); n > s.filled {
		return fmt.Errorf("xsk: frames not conserved on %s queue %d: fill and RX ring hold %d, %d were given", s.device, s.queue, n, s.filled)
	}
	if n := s.completion.ready(int(s.completion.size)); n > s.sending {
		return fmt.Errorf("xsk: frames not conserved on %s queue %d: the completion ring holds %d, %d were sent", s.device, s.queue, n, s.sending)
	}
	return nil
}
