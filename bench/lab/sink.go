package lab

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Sink receives datagrams, notes when the kernel had each of them, and sends each back.
type Sink struct {
	host *Host
	id   int
}

// Arrivals are what a sink has received since a moment.
type Arrivals struct {
	All   int       // since it began
	Since int       // since the moment, of the last 65,536
	Last  time.Time // zero: none ever
}

// Sink begins to receive on a UDP port, on every address of one family.
func (h *Host) Sink(ctx context.Context, family int, port uint16) (*Sink, error) {
	addr := netip.IPv4Unspecified()
	if family == 6 {
		addr = netip.IPv6Unspecified()
	}
	s := &Sink{host: h}
	return s, h.cell.call(ctx, "Cell.StartSink", netip.AddrPortFrom(addr, port), &s.id)
}

// Since counts what came after a moment.
func (s *Sink) Since(ctx context.Context, moment time.Time) (a Arrivals, err error) {
	err = s.host.cell.call(ctx, "Cell.SinkSince", SinkArgs{s.id, moment}, &a)
	return a, err
}

// Close ends it.
func (s *Sink) Close(ctx context.Context) error {
	return s.host.cell.call(ctx, "Cell.StopSink", s.id, &struct{}{})
}

// SinkArgs names a sink and a moment.
type SinkArgs struct {
	ID     int
	Moment time.Time
}

// remembered is how many arrivals a sink can tell apart.
const remembered = 1 << 16

// sink is the receiving end inside a cell.
type sink struct {
	conn *net.UDPConn
	mu   sync.Mutex
	all  int
	at   [remembered]int64
}

// sinks of this process, by number.
var sinks = struct {
	sync.Mutex
	next int
	all  map[int]*sink
}{all: map[int]*sink{}}

// StartSink opens the socket.
func (s *cellService) StartSink(at netip.AddrPort, id *int) error {
	network := "udp4"
	if at.Addr().Is6() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
		if err == nil {
			err = e
		}
	}
	if err != nil {
		conn.Close()
		return fmt.Errorf("sink on %s: %w", at, err)
	}
	k := &sink{conn: conn}
	go k.run()
	sinks.Lock()
	defer sinks.Unlock()
	sinks.next++
	*id = sinks.next
	sinks.all[*id] = k
	return nil
}

// run receives until the socket is closed.
func (k *sink) run() {
	b, more := make([]byte, 2048), make([]byte, 64)
	for {
		n, m, _, from, err := k.conn.ReadMsgUDPAddrPort(b, more)
		if err != nil {
			return
		}
		at := stamp(more[:m])
		k.mu.Lock()
		k.at[k.all%remembered] = at
		k.all++
		k.mu.Unlock()
		_, _ = k.conn.WriteToUDPAddrPort(b[:n], from)
	}
}

// stamp is when the kernel had the packet, in nanoseconds since 1970; now when it does not say.
func stamp(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err == nil {
		for _, m := range messages {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
				return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
			}
		}
	}
	return time.Now().UnixNano()
}

func sinkOf(id int) (*sink, error) {
	sinks.Lock()
	defer sinks.Unlock()
	if k := sinks.all[id]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("no sink %d", id)
}

// SinkSince counts.
func (s *cellService) SinkSince(a SinkArgs, out *Arrivals) error {
	k, err := sinkOf(a.ID)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	out.All = k.all
	last := int64(0)
	for i := range min(k.all, remembered) {
		if k.at[i] > a.Moment.UnixNano() {
			out.Since++
		}
		last = max(last, k.at[i])
	}
	if last > 0 {
		out.Last = time.Unix(0, last)
	}
	return nil
}

// StopSink closes the socket.
func (s *cellService) StopSink(id int, _ *struct{}) error {
	k, err := sinkOf(id)
	if err != nil {
		return err
	}
	sinks.Lock()
	delete(sinks.all, id)
	sinks.Unlock()
	return k.conn.Close()
}
