package packet

import "lace-cni.io/lace/fastpath/checksum"

// Port unreachable (RFC 792; RFC 4443, section 3.1).
const (
	icmpUnreachable   = 3
	icmpPort          = 3
	icmpv6Unreachable = 1
	icmpv6Port        = 4
)

// WriteUnreachable writes the ICMP or ICMPv6 port unreachable that answers p into dst and
// returns the length of the frame. Its source is p's destination. It quotes p from its IP
// header on, as far as the whole answer stays within 576 bytes for IPv4 (RFC 1812, section
// 4.3.2.3) and 1,280 for IPv6 (RFC 4443, section 2.4 c). The link header is copied from
// p; WriteInject then addresses it on the trunk.
//
// 0 means that nothing was written: p, whose last outcome must have been OK or NoPorts, is
// ICMP, a later fragment, comes from or goes to no single host, or dst is too short;
// MaxAnswer bytes are always enough. dst may be p's own frame, cut anew to its capacity; p
// describes that frame no longer then.
func WriteUnreachable(dst []byte, p *Packet) int {
	if p.Protocol == ProtocolICMP || p.Protocol == ProtocolICMPv6 || !p.answerable() {
		return 0
	}
	protocol, kind, code, limit := ProtocolICMP, uint8(icmpUnreachable), uint8(icmpPort), maxQuote4
	if p.Family == 6 {
		protocol, kind, code, limit = ProtocolICMPv6, icmpv6Unreachable, icmpv6Port, maxQuote6
	}
	header := p.ipLen() + ICMPLen
	quote := min(p.End-p.L3, limit-header)
	size := p.L3 + header + quote
	if len(dst) < size {
		return 0
	}
	// The quote first: where dst is p's frame, the headers overwrite its origin.
	copy(dst[p.L3+header:size], p.Frame[p.L3:p.L3+quote])
	at := p.writeIP(dst, protocol, answerTOS, ICMPLen+quote)
	icmp := dst[at:size]
	clear(icmp[:ICMPLen])
	icmp[0], icmp[1] = kind, code
	sum := uint16(0)
	if p.Family == 6 {
		sum = p.pseudo(protocol, len(icmp))
	}
	checksum.Put(icmp[2:], checksum.Of(sum, icmp))
	return size
}
