package matrix

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// Packet is a packet as a case describes it.
type Packet struct {
	Kind     string // SYN, SYN+ACK, ACK, udp, sctp; unreachable (an ICMP error); reset, refusal (Lace's own answers)
	Src, Dst Endpoint
	TTL      uint8
	About    *Packet // what an error quotes
}

// Endpoint is a place and, but for ICMP, a port.
type Endpoint struct {
	Place string
	Port  uint16
	Any   bool // "*": a port of the node's range
}

func (e Endpoint) String() string {
	switch {
	case e.Any:
		return e.Place + ":*"
	case e.Port != 0:
		return fmt.Sprintf("%s:%d", e.Place, e.Port)
	}
	return e.Place
}

func parseEndpoint(s string) (e Endpoint, err error) {
	place, port, has := strings.Cut(s, ":")
	e = Endpoint{Place: place, Any: port == "*"}
	if _, known := places[place]; !known {
		return e, fmt.Errorf("%q is no place", place)
	}
	if has && !e.Any {
		var n uint64
		n, err = strconv.ParseUint(port, 10, 16)
		e.Port = uint16(n)
	}
	return e, err
}

// parsePacket reads "KIND SRC > DST ttl N", and "about" and the same where it quotes.
func parsePacket(s string) (p Packet, err error) {
	head, about, quotes := strings.Cut(s, " about ")
	f := strings.Fields(head)
	if len(f) != 6 || f[2] != ">" || f[4] != "ttl" {
		return p, fmt.Errorf("%q is no packet", s)
	}
	p.Kind = f[0]
	ttl, err := strconv.ParseUint(f[5], 10, 8)
	if err != nil {
		return p, err
	}
	p.TTL = uint8(ttl)
	if p.Src, err = parseEndpoint(f[1]); err != nil {
		return p, err
	}
	if p.Dst, err = parseEndpoint(f[3]); err != nil {
		return p, err
	}
	if quotes {
		p.About = new(Packet)
		*p.About, err = parsePacket(about)
	}
	if (p.Kind == "unreachable" || p.Kind == "refusal") != quotes {
		return p, fmt.Errorf("%q: errors quote a packet, and nothing else does", s)
	}
	return p, err
}

// Frame builds the packet for a family ("v4", "v6"). chosen stands for "*". label goes into
// the packet, so that those of one case are told from those of others.
func (p *Packet) Frame(family string, chosen uint16, label uint16) frame.Frame {
	src, dst := p.Src.at(family, chosen), p.Dst.at(family, chosen)
	f := p.shape(src, dst, family, chosen, label)
	f.TTL = p.TTL
	return f
}

func (p *Packet) shape(src, dst netip.AddrPort, family string, chosen, label uint16) frame.Frame {
	says := fmt.Sprintf("says %05d", label)
	seq := uint32(label) << 8
	switch p.Kind {
	case "udp":
		return frame.UDP(src.String(), dst.String(), says)
	case "sctp": // a DATA chunk of 12 bytes: RFC 9260, section 3.3.1
		return frame.SCTP(src.String(), dst.String(), "\x00\x03\x00\x1a"+"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"+says+"\x00\x00")
	case "unreachable", "refusal":
		return p.unreachable(src, dst, family, chosen, label)
	case "reset":
		f := frame.TCP(src.String(), dst.String(), packet.FlagRST|packet.FlagACK, "")
		f.Seq, f.Ack, f.Window = 0, seq+1, 0
		return f
	}
	flags := map[string]uint8{"SYN": packet.FlagSYN, "SYN+ACK": packet.FlagSYN | packet.FlagACK, "ACK": packet.FlagACK}[p.Kind]
	if flags != packet.FlagACK {
		says = ""
	}
	f := frame.TCP(src.String(), dst.String(), flags, says)
	f.Seq = seq
	return f
}

// unreachable is a port unreachable. Lace's own bears what RFC 1812 asks for, precedence
// "internetwork control", and is not fragmented.
func (p *Packet) unreachable(src, dst netip.AddrPort, family string, chosen, label uint16) frame.Frame {
	quoted := p.About.Frame(family, chosen, label)
	typ, code := uint8(3), uint8(3)
	if family == "v6" {
		typ, code = 1, 4
	}
	f := frame.ICMP(src.Addr().String(), dst.Addr().String(), typ, code, string(quoted.Bytes()[packet.EthernetLen:]))
	if p.Kind == "refusal" {
		f.TOS, f.DF = 0xc0, family == "v4"
	}
	return f
}

func (e Endpoint) at(family string, chosen uint16) netip.AddrPort {
	if e.Any {
		return netip.AddrPortFrom(Addr(e.Place, family), chosen)
	}
	return netip.AddrPortFrom(Addr(e.Place, family), e.Port)
}

// Chosen is the port that stands for "*" in a frame that is to be p, 0 where p has none or
// the frame is another.
func (p *Packet) Chosen(f *frame.Frame) uint16 {
	switch {
	case p.Src.Any:
		return f.Src.Port()
	case p.Dst.Any:
		return f.Dst.Port()
	}
	return 0
}

// Differs says how a frame differs from p, "" where it does not. chosen is what "*" stands
// for by now, 0 where nothing has been chosen; it gets what the frame has there.
func (p *Packet) Differs(b []byte, family string, chosen *uint16, label uint16) string {
	if err := frame.Check(b); err != nil {
		return err.Error()
	}
	got, err := frame.Decode(b)
	if err != nil {
		return err.Error()
	}
	star := *chosen
	if star == 0 {
		star = p.Chosen(&got)
	}
	if p.Src.Any && (star < firstPort || star > lastPort) {
		return fmt.Sprintf("source port %d is outside of %d to %d", star, firstPort, lastPort)
	}
	want := p.Frame(family, star, label)
	got.Padding = 0
	if d := frame.Diff(want, got); d != "" {
		return d
	}
	*chosen = star
	return ""
}
