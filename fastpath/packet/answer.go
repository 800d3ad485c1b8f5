package packet

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/checksum"
)

// MaxAnswer is the longest frame that WriteReset and the writers of errors write: a tagged
// Ethernet header and an ICMPv6 error of the minimum MTU (RFC 4443, section 2.4 c).
const MaxAnswer = EthernetLen + TagLen + maxQuote6

const (
	maxQuote4 = 576  // whole answer, IPv4 (RFC 1812, section 4.3.2.3)
	maxQuote6 = 1280 // whole answer, IPv6 (RFC 4443, section 2.4 c)

	answerTTL = 64

	// Precedence "internetwork control" of ICMP errors (RFC 1812, section 4.3.2.5).
	answerTOS = 0xc0

	ipv4DontFragment = 0x4000
)

// answerable reports whether an answer to p could do harm or reach nobody: it must come
// from one host and go to one host (RFC 1122, section 3.2.2; RFC 4443, section 2.4 e).
func (p *Packet) answerable() bool {
	return p.L4 != 0 && single(&p.Src) && single(&p.Dst)
}

// single reports whether a can be the address of a single host: neither unspecified nor
// multicast nor, for IPv4, reserved or broadcast (224.0.0.0/3).
func single(a *Addr) bool {
	if a.Is4() {
		return a[12] != 0 && a[12] < 224
	}
	return *a != Addr{} && a[0] != 0xff
}

// writeIP writes the link and IP headers of an answer to p from src around length bytes of
// protocol, and returns where these begin. The link header is that of p's frame. dst is
// long enough.
func (p *Packet) writeIP(dst []byte, src *Addr, protocol, tos uint8, length int) int {
	copy(dst[:p.L3], p.Frame[:p.L3])
	if p.Family == 4 {
		ip := dst[p.L3 : p.L3+IPv4Len]
		clear(ip)
		ip[0], ip[1], ip[8], ip[9] = 0x45, tos, answerTTL, protocol
		binary.BigEndian.PutUint16(ip[2:], uint16(IPv4Len+length))
		binary.BigEndian.PutUint16(ip[6:], ipv4DontFragment) // and so no identification is needed (RFC 6864)
		copy(ip[12:16], src[12:])
		copy(ip[16:20], p.Src[12:])
		checksum.Put(ip[10:], checksum.Of(0, ip))
		return p.L3 + IPv4Len
	}
	ip := dst[p.L3 : p.L3+IPv6Len]
	binary.BigEndian.PutUint32(ip, 6<<28|uint32(tos)<<20)
	binary.BigEndian.PutUint16(ip[4:], uint16(length))
	ip[6], ip[7] = protocol, answerTTL
	copy(ip[8:24], src[:])
	copy(ip[24:40], p.Src[:])
	return p.L3 + IPv6Len
}

// ipLen is the length of an answer's IP header.
func (p *Packet) ipLen() int {
	if p.Family == 4 {
		return IPv4Len
	}
	return IPv6Len
}

// pseudo is the sum of the pseudo header of an answer to p from src.
func (p *Packet) pseudo(src *Addr, protocol uint8, length int) uint16 {
	return checksum.Pseudo((*[16]byte)(src), (*[16]byte)(&p.Src), protocol, length)
}
