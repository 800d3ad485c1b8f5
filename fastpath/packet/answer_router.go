package packet

// icmpFragNeeded is the code of an unreachable for want of fragmentation (RFC 1191).
const icmpFragNeeded = 4

// WriteTooBig writes what a router whose next hop takes packets of up to mtu bytes says to
// the sender of p: fragmentation needed (RFC 1191, section 4) or packet too big (RFC 4443,
// section 3.2). src is the router's address; see writeError for the rest.
func WriteTooBig(dst []byte, p *Packet, src *Addr, mtu uint32) int {
	if p.Family == 6 {
		return p.writeError(dst, src, icmpv6TooBig, 0, mtu)
	}
	return p.writeError(dst, src, icmpUnreachable, icmpFragNeeded, min(mtu, maxIP))
}

// WriteTimeExceeded writes what a router says to the sender of p, whose time to live or
// hop limit has run out on it (RFC 1812, section 5.3.1; RFC 4443, section 3.3). src is the
// router's address; see writeError for the rest.
func WriteTimeExceeded(dst []byte, p *Packet, src *Addr) int {
	if p.Family == 6 {
		return p.writeError(dst, src, icmpv6Exceeded, 0, 0)
	}
	return p.writeError(dst, src, icmpExceeded, 0, 0)
}
