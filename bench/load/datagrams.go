package load

import (
	"context"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Datagrams sends small UDP datagrams from real sockets, 32 by one call: what they cost
// includes the sender's own network stack.
type Datagrams struct {
	space   *Space
	sockets []int
	next    int
	sent    uint64
	headers []header
	vector  unix.Iovec
	payload []byte
}

// header is struct mmsghdr.
type header struct {
	unix.Msghdr
	length uint32
	_      uint32
}

const (
	burstDatagrams  = 32
	payloadDatagram = FrameLength - 14 - 20 - 8
)

// OpenDatagrams opens sockets that are connected to one address: one flow each.
func OpenDatagrams(s *Space, to netip.AddrPort, flows int) (*Datagrams, error) {
	d := &Datagrams{space: s, payload: make([]byte, payloadDatagram), headers: make([]header, burstDatagrams)}
	d.vector = unix.Iovec{Base: &d.payload[0], Len: payloadDatagram}
	for i := range d.headers {
		d.headers[i].Iov, d.headers[i].Iovlen = &d.vector, 1
	}
	err := s.Do(func() error {
		for range flows {
			fd, err := connected(unix.SOCK_DGRAM, to, 0)
			if err != nil {
				return err
			}
			d.sockets = append(d.sockets, fd)
		}
		return nil
	})
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close closes the sockets.
func (d *Datagrams) Close() error {
	for _, fd := range d.sockets {
		unix.Close(fd)
	}
	return nil
}

// burst tries to send n datagrams, rounded up to whole calls, and returns how many it tried.
// It never waits: where packets hang on the way, a full send buffer would hold it for ever.
func (d *Datagrams) burst(n int) (tried int, err error) {
	for ; tried < n; tried += burstDatagrams {
		fd := d.sockets[d.next%len(d.sockets)]
		d.next++
		sent, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&d.headers[0])), burstDatagrams, unix.MSG_DONTWAIT, 0, 0)
		if e == unix.EINTR || e == unix.ECONNREFUSED || e == unix.EAGAIN || e == unix.ENOBUFS {
			continue
		}
		if e != 0 {
			return tried, fmt.Errorf("send datagrams from %s: %w", d.space.name, e)
		}
		d.sent += uint64(sent)
	}
	return tried, nil
}

func (d *Datagrams) count() (uint64, error) { return d.sent, nil }

// Run sends in a closed loop and returns what it cost. The end of ctx ends it with an error
// within some milliseconds.
func (d *Datagrams) Run(ctx context.Context, l Loop) (c Cost, err error) {
	err = d.space.Do(func() error {
		c, err = l.run(ctx, d)
		return err
	})
	return c, err
}

// Warm sends n datagrams without looking at what they cost, and throws away their answers.
func (d *Datagrams) Warm(ctx context.Context, cpu, n int) error {
	return d.space.Do(func() error {
		if err := generate(cpu); err != nil {
			return err
		}
		defer d.drain()
		return send(ctx, d, pace{left: n})
	})
}

// drain throws away answers that wait in the sockets.
func (d *Datagrams) drain() {
	b := make([]byte, 64)
	for _, fd := range d.sockets {
		for {
			if _, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT); err != nil {
				break
			}
		}
	}
}

// Establish exchanges one packet each way on every flow with a server that echoes.
func (d *Datagrams) Establish(ctx context.Context, patience time.Duration) error {
	b := make([]byte, 64)
	for _, fd := range d.sockets {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := limit(fd, patience); err != nil {
			return err
		}
		answered := false
		for range 3 {
			if _, err := unix.Write(fd, d.payload); err != nil {
				continue
			}
			if _, err := read(fd, b); err == nil {
				answered = true
				break
			}
		}
		if !answered {
			return fmt.Errorf("a flow of %s had no answer to 3 datagrams within %s each", d.space.name, patience)
		}
		if err := limit(fd, 0); err != nil {
			return err
		}
	}
	d.drain()
	return nil
}
