package packet

import "encoding/binary"

// Lengths of headers in bytes, without options.
const (
	EthernetLen = 14
	TagLen      = 4
	IPv4Len     = 20
	IPv6Len     = 40
	TCPLen      = 20
	UDPLen      = 8
	SCTPLen     = 12
	ICMPLen     = 8
)

// Ether types (IEEE 802).
const (
	etherIPv4 = 0x0800
	etherTag  = 0x8100
	etherIPv6 = 0x86dd
)

// Parse fills p from frame, which begins with its Ethernet header, and keeps the slice:
// p is good as long as the frame is. Unless the outcome is OK or NoPorts only Frame and
// what was read before the fault is set.
//
// Headers are held to what every receiver would: the length fields must agree with each
// other and with the frame. Checksums are not verified, the receiver does that; a frame
// longer than its packet is padded, which is fine. Whole packets and first fragments must
// hold their transport header. Not taken, Invalid: IPv6 jumbograms (RFC 2675), v4-mapped
// addresses in an IPv6 header, which would pass for IPv4 in every table, and chains of
// more than MaxExtensions extension headers. Frames with two VLAN tags are NotIP.
func (p *Packet) Parse(frame []byte) Outcome {
	*p = Packet{Frame: frame, L3: EthernetLen}
	return p.parse(frame)
}

// ParseCut is Parse for a frame that may end before its packet does, behind the headers.
// What can be said of the packet is who sent it and to whom; it cannot be sent on.
func (p *Packet) ParseCut(frame []byte) Outcome {
	*p = Packet{Frame: frame, L3: EthernetLen, Cut: true}
	return p.parse(frame)
}

func (p *Packet) parse(frame []byte) Outcome {
	if len(frame) < EthernetLen {
		p.L3 = 0
		return Truncated
	}
	kind := binary.BigEndian.Uint16(frame[12:14])
	if kind == etherTag {
		if len(frame) < EthernetLen+TagLen {
			return Truncated
		}
		p.Tagged, p.L3 = true, EthernetLen+TagLen
		p.VLAN = binary.BigEndian.Uint16(frame[14:16]) & 0xfff
		kind = binary.BigEndian.Uint16(frame[16:18])
	}
	switch kind {
	case etherIPv4:
		return p.parseIPv4()
	case etherIPv6:
		return p.parseIPv6()
	}
	return NotIP
}

// parseTransport reads the header at L4, inside a whole packet or first fragment.
func (p *Packet) parseTransport() Outcome {
	l4 := p.Frame[p.L4:p.End]
	switch p.Protocol {
	case ProtocolTCP:
		if len(l4) < TCPLen {
			return Truncated
		}
		p.Flags = l4[13]
		if header := int(l4[12]>>4) * 4; header < TCPLen {
			return Invalid
		} else if header > len(l4) {
			return Truncated
		}
	case ProtocolUDP:
		if len(l4) < UDPLen {
			return Truncated
		}
		// A UDP datagram may end before its packet does; the sender's own checksum then
		// covers the datagram alone. A first fragment holds less than the whole.
		if n := int(binary.BigEndian.Uint16(l4[4:6])); n < UDPLen || n > len(l4) && !p.More && !p.Cut {
			return Invalid
		}
		if p.Family == 6 && l4[6]|l4[7] == 0 {
			return Invalid // IPv6 has no other checksum (RFC 8200, section 8.1)
		}
	case ProtocolSCTP:
		if len(l4) < SCTPLen {
			return Truncated
		}
	case ProtocolICMP, ProtocolICMPv6:
		return p.parseICMP(l4)
	default:
		return NoPorts
	}
	p.SrcPort = binary.BigEndian.Uint16(l4[0:2])
	p.DstPort = binary.BigEndian.Uint16(l4[2:4])
	return OK
}

// parseICMP reads type and code, where the protocol belongs to the family.
func (p *Packet) parseICMP(l4 []byte) Outcome {
	if (p.Protocol == ProtocolICMP) != (p.Family == 4) {
		return NoPorts
	}
	if len(l4) < ICMPLen {
		return Truncated
	}
	p.ICMPType, p.ICMPCode = l4[0], l4[1]
	return NoPorts
}
