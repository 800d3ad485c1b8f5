package packet

// Port unreachable (RFC 792; RFC 4443, section 3.1).
const (
	icmpUnreachable   = 3
	icmpPort          = 3
	icmpv6Unreachable = 1
	icmpv6Port        = 4
)

// WriteUnreachable writes the ICMP or ICMPv6 port unreachable that answers p, from p's
// destination; see writeError for what it quotes, when there is none, and what dst may be.
func WriteUnreachable(dst []byte, p *Packet) int {
	if p.Family == 6 {
		return p.writeError(dst, &p.Dst, icmpv6Unreachable, icmpv6Port, 0)
	}
	return p.writeError(dst, &p.Dst, icmpUnreachable, icmpPort, 0)
}
