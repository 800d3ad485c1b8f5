package packet

import "encoding/binary"

// Quote is the packet that an ICMP error is about, as far as the error quotes it: offsets
// and decoded fields over the frame of the error. It is filled in place by Parse and
// reused.
type Quote struct {
	Src, Dst         Addr
	SrcPort, DstPort uint16 // host order

	L3  int // offset of its IP header in the frame
	L4  int // offset of its transport header
	End int // where the quotation ends

	// Transport is the length of its transport header and payload by its own IP header,
	// however much of that is quoted. 0: the header does not tell, or it is a fragment.
	Transport int

	Family   uint8 // 4 or 6, that of the error
	Protocol uint8 // behind IPv6 extension headers
}

// Parse reads the packet that p quotes, p being an error as IsError has it. OK means that
// addresses and ports are known. NoPorts: it is a later fragment or another protocol, or
// the quotation ends before its ports. Invalid: what is quoted is no packet of the error's
// family.
//
// A quotation is held to less than a packet: it may be cut off anywhere, and its length
// and checksums are what its last router, or a careless host, made of them. IPv4 options
// and IPv6 extension headers are walked over as Packet.Parse does.
func (q *Quote) Parse(p *Packet) Outcome {
	*q = Quote{Family: p.Family, L3: p.L4 + ICMPLen, End: p.quoted()}
	if q.L3 > q.End {
		return Truncated
	}
	if q.Family == 4 {
		return q.parseIPv4(p.Frame)
	}
	return q.parseIPv6(p.Frame)
}

func (q *Quote) parseIPv4(frame []byte) Outcome {
	ip := frame[q.L3:q.End]
	if len(ip) < IPv4Len {
		return Truncated
	}
	header := int(ip[0]&0x0f) * 4
	if ip[0]>>4 != 4 || header < IPv4Len {
		return Invalid
	}
	q.Protocol = ip[9]
	q.Src[10], q.Src[11], q.Dst[10], q.Dst[11] = 0xff, 0xff, 0xff, 0xff
	copy(q.Src[12:], ip[12:16])
	copy(q.Dst[12:], ip[16:20])
	field := binary.BigEndian.Uint16(ip[6:8])
	if field&ipv4Offset != 0 {
		return NoPorts
	}
	if field&ipv4More == 0 {
		q.Transport = max(0, int(binary.BigEndian.Uint16(ip[2:4]))-header)
	}
	return q.parsePorts(frame, q.L3+header)
}

func (q *Quote) parseIPv6(frame []byte) Outcome {
	ip := frame[q.L3:q.End]
	if len(ip) < IPv6Len {
		return Truncated
	}
	q.Src, q.Dst = Addr(ip[8:24]), Addr(ip[24:40])
	if ip[0]>>4 != 6 || q.Src.Is4() || q.Dst.Is4() {
		return Invalid
	}
	end := q.L3 + IPv6Len + int(binary.BigEndian.Uint16(ip[4:6]))
	at, whole, outcome := q.walk(frame, ip[6])
	if outcome != OK {
		return outcome
	}
	if whole {
		q.Transport = max(0, end-at)
	}
	return q.parsePorts(frame, at)
}

// walk follows the chain of extension headers to the transport header. whole is false for
// a first fragment, NoPorts the outcome of a later one.
func (q *Quote) walk(frame []byte, next uint8) (at int, whole bool, o Outcome) {
	at, whole = q.L3+IPv6Len, true
	for n := 0; ; n++ {
		q.Protocol = next
		switch next {
		case extHopByHop, extRouting, extFragment, extAH, extDestination:
		default:
			return at, whole, OK
		}
		if n == MaxExtensions {
			return 0, false, NoPorts
		}
		length, outcome := extension(next, frame[at:q.End])
		if outcome != OK {
			return 0, false, outcome
		}
		header := frame[at : at+length]
		switch {
		case next == extRouting && header[3] != 0:
			return 0, false, NoPorts // Dst is a waypoint
		case next == extFragment:
			field := binary.BigEndian.Uint16(header[2:4])
			if field&^7 != 0 {
				return 0, false, NoPorts
			}
			whole = whole && field&1 == 0
		}
		at, next = at+length, header[0]
	}
}

// parsePorts reads what every transport with ports begins with, and all that is needed of
// it.
func (q *Quote) parsePorts(frame []byte, at int) Outcome {
	switch q.Protocol {
	case ProtocolTCP, ProtocolUDP, ProtocolSCTP:
	default:
		return NoPorts
	}
	if at+4 > q.End {
		return NoPorts
	}
	q.L4 = at
	q.SrcPort = binary.BigEndian.Uint16(frame[at:])
	q.DstPort = binary.BigEndian.Uint16(frame[at+2:])
	return OK
}
