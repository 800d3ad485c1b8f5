package wire

import (
	"net/netip"
	"sync"

	"lace-cni.io/lace/fastpath/packet"
)

// Carry takes a frame that a host sends. It must not call back into the host.
type Carry func(from *Host, frame []byte)

// Host is one member of the simulated network.
type Host struct {
	Name  string
	Addr4 netip.Addr
	Addr6 netip.Addr
	carry Carry

	mu      sync.Mutex
	conns   map[ends]*conn
	sockets map[ends]chan Segment // UDP clients
	servers map[uint16]bool       // ports with an echo server
	next    uint16                // port of the next client
	wrong   []error               // frames that no host should get
}

// ends are those of a connection, seen from this host.
type ends struct{ local, remote netip.AddrPort }

// Client ports of a host.
const (
	firstPort = 20000
	lastPort  = 60000
)

// NewHost makes a host that sends by carry.
func NewHost(name string, addr4, addr6 netip.Addr, carry Carry) *Host {
	return &Host{
		Name: name, Addr4: addr4, Addr6: addr6, carry: carry,
		conns: map[ends]*conn{}, sockets: map[ends]chan Segment{}, servers: map[uint16]bool{},
		next: firstPort,
	}
}

// Has says whether an address is the host's.
func (h *Host) Has(a netip.Addr) bool { return a == h.Addr4 || a == h.Addr6 }

// Listen starts an echo server on a port, for TCP and UDP.
func (h *Host) Listen(port uint16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers[port] = true
}

// Wrong are the frames that reached the host although they should not have: wrong
// checksums, other hosts' addresses.
func (h *Host) Wrong() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]error(nil), h.wrong...)
}

// Receive takes a frame that has arrived.
func (h *Host) Receive(frame []byte) {
	s, err := ReadFrame(frame)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		h.wrong = append(h.wrong, err)
	case s.Unreachable:
		h.unreachable(s)
	case s.Protocol == packet.ProtocolUDP:
		h.datagram(s)
	default:
		h.segment(s)
	}
}

// segment gives a TCP segment to its connection, or to a server, or resets.
func (h *Host) segment(s Segment) {
	e := ends{s.Dst, s.Src}
	if c := h.conns[e]; c != nil {
		c.arrive(s)
		return
	}
	if s.Flags&packet.FlagSYN != 0 && s.Flags&packet.FlagACK == 0 && h.servers[s.Dst.Port()] {
		c := newConn(h, e)
		c.received = s.Seq + 1
		h.conns[e] = c
		go c.serve(h.Name)
		return
	}
	if s.Flags&packet.FlagRST == 0 {
		reset := Segment{Src: s.Dst, Dst: s.Src, Protocol: packet.ProtocolTCP,
			Flags: packet.FlagRST | packet.FlagACK, Seq: s.Ack, Ack: s.Seq + 1}
		h.carry(h, reset.Frame())
	}
}

func (h *Host) forget(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns[c.ends] == c {
		delete(h.conns, c.ends)
	}
}

// datagram answers as a server, or wakes a client.
func (h *Host) datagram(s Segment) {
	if socket := h.sockets[ends{s.Dst, s.Src}]; socket != nil {
		select {
		case socket <- s:
		default: // full: lost, as datagrams are
		}
		return
	}
	if h.servers[s.Dst.Port()] {
		answer := Segment{Src: s.Dst, Dst: s.Src, Protocol: packet.ProtocolUDP,
			Payload: append(greeting(h.Name, s.Src), s.Payload...)}
		h.carry(h, answer.Frame())
	}
}

// unreachable tells the socket that sent the quoted segment.
func (h *Host) unreachable(s Segment) {
	if socket := h.sockets[ends{s.Src, s.Dst}]; socket != nil {
		select {
		case socket <- s:
		default:
		}
	}
}

// from gives a client its end, with a port that is in use by nobody towards that remote.
func (h *Host) from(remote netip.AddrPort) ends {
	addr := h.Addr4
	if remote.Addr().Is6() {
		addr = h.Addr6
	}
	for {
		h.next++
		if h.next > lastPort {
			h.next = firstPort
		}
		e := ends{netip.AddrPortFrom(addr, h.next), remote}
		if h.conns[e] == nil && h.sockets[e] == nil {
			return e
		}
	}
}
