package packet

// Part says where the bytes of a fragment begin in the frame, and what its IP or fragment
// header says lies there in the whole packet: a transport protocol, or an extension header.
// They are the same in every fragment of a packet. For a packet that Parse found to be a
// Fragment.
func (p *Packet) Part() (from int, next uint8) {
	if p.Family == 4 {
		return p.L3 + int(p.Frame[p.L3]&0x0f)*4, p.Protocol
	}
	header := p.FragmentHeader()
	if header == 0 {
		return p.End, p.Protocol
	}
	return header + 8, p.Frame[header]
}

// FragmentHeader is the offset of the fragment header of an IPv6 packet that Parse found to
// be a Fragment; 0 when there is none. Parse has checked that the chain up to it lies in the
// frame.
func (p *Packet) FragmentHeader() int {
	next, at := p.Frame[p.L3+6], p.L3+IPv6Len
	for range MaxExtensions {
		if at+8 > p.End {
			return 0
		}
		switch next {
		case extFragment:
			if field := uint16(p.Frame[at+2])<<8 | uint16(p.Frame[at+3]); field&^6 == 0 {
				break // a whole packet in a fragment header
			}
			return at
		case extHopByHop, extRouting, extAH, extDestination:
		default:
			return 0
		}
		length, outcome := extension(next, p.Frame[at:p.End])
		if outcome != OK {
			return 0
		}
		next, at = p.Frame[at], at+length
	}
	return 0
}

// IsExtension reports whether a protocol number is that of an extension header behind which
// Parse looks for the transport.
func IsExtension(protocol uint8) bool {
	switch protocol {
	case extHopByHop, extRouting, extAH, extDestination:
		return true
	}
	return false
}
