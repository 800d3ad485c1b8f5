package packet

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/checksum"
)

// writeError writes an ICMP or ICMPv6 error about p from src into dst and returns the
// length of the frame. rest is the word behind the checksum. It quotes p from its IP header
// on, as far as the whole stays within 576 bytes for IPv4 (RFC 1812, section 4.3.2.3) and
// 1,280 for IPv6 (RFC 4443, section 2.4 c). The link header is copied from p; WriteInject
// then addresses it on the trunk.
//
// 0 means that nothing was written: p, whose last outcome must have been OK or NoPorts, is
// ICMP, a later fragment, comes from or goes to no single host; src is no single host's
// address of p's family or means something on one link only; or dst is too short;
// MaxAnswer bytes are always enough. dst may be p's own frame, cut anew to its capacity; p
// describes that frame no longer then.
func (p *Packet) writeError(dst []byte, src *Addr, kind, code uint8, rest uint32) int {
	if p.Protocol == ProtocolICMP || p.Protocol == ProtocolICMPv6 || !p.answerable() || !p.maySpeak(src) {
		return 0
	}
	protocol, limit := ProtocolICMP, maxQuote4
	if p.Family == 6 {
		protocol, limit = ProtocolICMPv6, maxQuote6
	}
	header := p.ipLen() + ICMPLen
	quote := min(p.End-p.L3, limit-header)
	size := p.L3 + header + quote
	if len(dst) < size {
		return 0
	}
	// The quote first: where dst is p's frame, the headers overwrite its origin.
	copy(dst[p.L3+header:size], p.Frame[p.L3:p.L3+quote])
	at := p.writeIP(dst, src, protocol, answerTOS, ICMPLen+quote)
	icmp := dst[at:size]
	icmp[0], icmp[1], icmp[2], icmp[3] = kind, code, 0, 0
	binary.BigEndian.PutUint32(icmp[4:], rest)
	sum := uint16(0)
	if p.Family == 6 {
		sum = p.pseudo(src, protocol, len(icmp))
	}
	checksum.Put(icmp[2:], checksum.Of(sum, icmp))
	return size
}

// maySpeak reports whether an error about p may come from a: the destination that p itself
// names, or any one host's address that means the same wherever the error gets to.
func (p *Packet) maySpeak(a *Addr) bool {
	if a.Is4() {
		return p.Family == 4 && single(a) && (a[12] != 169 || a[13] != 254 || *a == p.Dst)
	}
	return p.Family == 6 && single(a) && (a[0] != 0xfe || a[1]&0xc0 != 0x80 || *a == p.Dst)
}

// DontFragment reports whether routers must not cut p into pieces: its sender forbids it,
// or it is IPv6.
func (p *Packet) DontFragment() bool {
	return p.Family != 4 || binary.BigEndian.Uint16(p.Frame[p.L3+6:])&ipv4DontFragment != 0
}
