package packet

import "encoding/binary"

// Fragment field of the IPv4 header (RFC 791): 13 bits of offset in 8-byte units under
// three flags.
const (
	ipv4More   = 0x2000
	ipv4Offset = 0x1fff
)

// maxIP is the longest packet that 16-bit length and fragment offset can describe.
const maxIP = 65535

func (p *Packet) parseIPv4() Outcome {
	ip := p.Frame[p.L3:]
	if len(ip) < IPv4Len {
		return Truncated
	}
	header := int(ip[0]&0x0f) * 4
	if ip[0]>>4 != 4 || header < IPv4Len {
		return Invalid
	}
	if header > len(ip) {
		return Truncated
	}
	total := int(binary.BigEndian.Uint16(ip[2:4]))
	if total < header || total > len(ip) && !p.Cut {
		return Invalid
	}
	p.Family, p.Protocol, p.TTL = 4, ip[9], ip[8]
	p.Src[10], p.Src[11], p.Dst[10], p.Dst[11] = 0xff, 0xff, 0xff, 0xff
	copy(p.Src[12:], ip[12:16])
	copy(p.Dst[12:], ip[16:20])
	p.ID = uint32(binary.BigEndian.Uint16(ip[4:6]))
	p.Options = header > IPv4Len
	p.End = p.L3 + min(total, len(ip))

	if field := binary.BigEndian.Uint16(ip[6:8]); field&(ipv4More|ipv4Offset) != 0 {
		p.Fragment, p.More, p.Offset = true, field&ipv4More != 0, field&ipv4Offset*8
		if int(p.Offset)+total > maxIP {
			return Invalid
		}
		if p.Offset != 0 {
			return NoPorts
		}
	}
	p.L4 = p.L3 + header
	return p.parseTransport()
}
