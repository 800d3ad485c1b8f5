package packet

import "encoding/binary"

// IPv6 extension headers that Parse walks over (RFC 8200, section 4; RFC 4302).
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extAH          = 51
	extDestination = 60
)

// MaxExtensions bounds the chain of extension headers: more than RFC 8200 recommends
// any packet to carry. The claim programs walk as far.
const MaxExtensions = 8

// optionJumbo is the hop-by-hop option of a packet longer than 65,535 bytes (RFC 2675).
const optionJumbo = 0xc2

func (p *Packet) parseIPv6() Outcome {
	ip := p.Frame[p.L3:]
	if len(ip) < IPv6Len {
		return Truncated
	}
	length := int(binary.BigEndian.Uint16(ip[4:6]))
	if ip[0]>>4 != 6 || IPv6Len+length > len(ip) && !p.Cut || length == 0 && ip[6] == extHopByHop {
		return Invalid // the last is how a jumbogram begins
	}
	p.Family, p.TTL = 6, ip[7]
	p.Src, p.Dst = Addr(ip[8:24]), Addr(ip[24:40])
	if p.Src.Is4() || p.Dst.Is4() {
		return Invalid
	}
	p.End = p.L3 + min(IPv6Len+length, len(ip))
	return p.walk(ip[6])
}

// walk follows the chain of extension headers, next being the first header's protocol,
// up to the transport header.
func (p *Packet) walk(next uint8) Outcome {
	at := p.L3 + IPv6Len
	for n := 0; ; n++ {
		p.Protocol = next
		switch next {
		case extHopByHop, extRouting, extFragment, extAH, extDestination:
		default:
			p.L4 = at
			return p.parseTransport()
		}
		if n == MaxExtensions || next == extHopByHop && n != 0 {
			return Invalid // hop-by-hop options stand first or nowhere
		}
		length, outcome := extension(next, p.Frame[at:p.End])
		if outcome != OK {
			return outcome
		}
		p.Options = true
		header := p.Frame[at : at+length]
		switch {
		case next == extRouting && header[3] != 0:
			// Segments are left: Dst is a waypoint and not the destination that the
			// transport checksum covers. Nothing behind is for us.
			p.L4 = at
			return NoPorts
		case next == extFragment:
			if outcome := p.fragment(header, at+length); outcome != OK {
				return outcome
			}
		}
		at, next = at+length, header[0]
	}
}

// extension is the length of the extension header at the start of b, all of it in b.
func extension(kind uint8, b []byte) (int, Outcome) {
	if len(b) < 8 {
		return 0, Truncated
	}
	length := 8 * (int(b[1]) + 1)
	switch kind {
	case extFragment:
		length = 8
	case extAH:
		length = 4 * (int(b[1]) + 2)
		if length < 12 {
			return 0, Invalid
		}
	}
	if length > len(b) {
		return 0, Truncated
	}
	if kind == extHopByHop && !plainOptions(b[2:length]) {
		return 0, Invalid
	}
	return length, OK
}

// plainOptions reports whether hop-by-hop options fill b exactly, and none of them makes
// the packet a jumbogram.
func plainOptions(b []byte) bool {
	for len(b) > 0 {
		if b[0] == 0 { // Pad1
			b = b[1:]
			continue
		}
		if b[0] == optionJumbo || len(b) < 2 || len(b) < 2+int(b[1]) {
			return false
		}
		b = b[2+int(b[1]):]
	}
	return true
}

// fragment reads the fragment header, behind which the fragment begins at from. OK means
// that the walk may go on: a first fragment, or a whole packet in a fragment header
// (RFC 6946).
func (p *Packet) fragment(header []byte, from int) Outcome {
	if p.Fragment {
		return Invalid
	}
	field := binary.BigEndian.Uint16(header[2:4])
	offset, more := field&^7, field&1 != 0
	if offset == 0 && !more {
		return OK
	}
	length := p.End - from
	if more && length%8 != 0 && !p.Cut || int(offset)+length > maxIP {
		return Invalid
	}
	p.Fragment, p.Offset, p.More = true, offset, more
	p.ID = binary.BigEndian.Uint32(header[4:8])
	if offset != 0 {
		p.Protocol = header[0]
		return NoPorts
	}
	return OK
}
