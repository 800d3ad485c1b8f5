package load

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Conversation is one flow of UDP and one connection of TCP to a server that echoes, both
// kept from one measurement to the next.
type Conversation struct {
	space     *Space
	to        netip.AddrPort
	datagrams int
	stream    int // -1: it broke, and the next attempt opens another
	number    uint64
}

// OpenConversation opens both.
func OpenConversation(s *Space, to netip.AddrPort) (*Conversation, error) {
	c := &Conversation{space: s, to: to, datagrams: -1, stream: -1}
	err := s.Do(func() (err error) {
		if c.datagrams, err = connected(unix.SOCK_DGRAM, to, patience); err != nil {
			return err
		}
		return c.connect()
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Conversation) connect() (err error) {
	c.stream, err = connected(unix.SOCK_STREAM, c.to, patience)
	return err
}

// Close ends both.
func (c *Conversation) Close() error {
	for _, fd := range []int{c.datagrams, c.stream} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// Ask sends a message and waits for its echo, over UDP and TCP in turn, until the time is
// over. Attempts without an answer are counted, and are no error.
func (c *Conversation) Ask(ctx context.Context, d time.Duration) (udp, tcp Exchanged, err error) {
	err = c.space.Do(func() error {
		begun := time.Now()
		b := make([]byte, messageSize)
		for now := begun; now.Sub(begun) < d && ctx.Err() == nil; {
			now = udp.once(now, b, c.askDatagram)
			now = tcp.once(now, b, c.askStream)
		}
		udp.Took = time.Since(begun)
		tcp.Took = udp.Took
		return context.Cause(ctx)
	})
	return udp, tcp, err
}

// askDatagram passes over the late echoes of attempts that were given up.
func (c *Conversation) askDatagram(b []byte) error {
	c.number++
	binary.LittleEndian.PutUint64(b, c.number)
	if _, err := unix.Write(c.datagrams, b[:payloadDatagram]); err != nil {
		return err
	}
	for {
		n, err := read(c.datagrams, b)
		if err != nil {
			return err
		}
		if n >= 8 && binary.LittleEndian.Uint64(b) == c.number {
			return nil
		}
	}
}

// askStream gives a connection up that did not answer: what came later would be taken for
// the next answer.
func (c *Conversation) askStream(b []byte) error {
	if c.stream < 0 {
		if err := c.connect(); err != nil {
			return err
		}
	}
	err := writeAll(c.stream, b)
	if err == nil {
		err = readAll(c.stream, b)
	}
	if err != nil {
		unix.Close(c.stream)
		c.stream = -1
	}
	return err
}
