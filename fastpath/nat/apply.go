package nat

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/checksum"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// Offsets in headers: RFC 791, RFC 8200, RFC 9293, RFC 768.
const (
	ip4Len, ip4Check, ip4Src, ip4Dst = 20, 10, 12, 16
	ip6Len, ip6Src, ip6Dst           = 40, 8, 24
	tcpLen, tcpCheck                 = 20, 16
	udpLen, udpCheck                 = 8, 6
)

// Apply rewrites addresses and ports of a parsed packet in its frame, carries the
// checksums on, and lets p's addresses and ports follow. A UDP checksum of zero, which
// says that there is none, stays zero; a wrong checksum stays wrong by as much.
//
// It reports false and leaves frame and p alone when the packet cannot take this rewrite:
// the other address family, a protocol without ports, headers that do not fit, or a
// fragment of an SCTP packet whose ports change, since its checksum covers what is not
// there. Of later fragments only the addresses are rewritten.
func Apply(p *packet.Packet, r *conntrack.Rewrite) bool {
	if !fits(p, r) {
		return false
	}
	if p.Family == 4 {
		applyIPv4(p.Frame[p.L3:], r)
	} else {
		h := p.Frame[p.L3:]
		copy(h[ip6Src:ip6Dst], r.Src[:])
		copy(h[ip6Dst:ip6Len], r.Dst[:])
	}
	if p.L4 != 0 {
		applyTransport(p, r)
	}
	p.Src, p.Dst = r.Src, r.Dst
	return true
}

func applyIPv4(h []byte, r *conntrack.Rewrite) {
	h = h[:ip4Len]
	copy(h[ip4Src:ip4Dst], r.Src[12:])
	copy(h[ip4Dst:ip4Len], r.Dst[12:])
	checksum.Put(h[ip4Check:], checksum.Update(checksum.Get(h[ip4Check:]), r.L3))
}

func applyTransport(p *packet.Packet, r *conntrack.Rewrite) {
	b := p.Frame[p.L4:p.End]
	switch p.Protocol {
	case packet.ProtocolTCP:
		check := b[tcpCheck : tcpCheck+2]
		checksum.Put(check, checksum.Update(checksum.Get(check), r.L4))
	case packet.ProtocolUDP:
		check := b[udpCheck : udpCheck+2]
		if old := checksum.Get(check); old != 0 {
			checksum.Put(check, checksum.NonZero(checksum.Update(old, r.L4)))
		}
	case packet.ProtocolSCTP:
		applySCTP(p, b, r)
		return
	}
	putPorts(p, b, r)
}

// applySCTP carries the checksum on. CRCs are linear: what the checksum was wrong by
// before, it is wrong by after.
func applySCTP(p *packet.Packet, b []byte, r *conntrack.Rewrite) {
	if p.SrcPort == r.SrcPort && p.DstPort == r.DstPort {
		return // addresses are not covered (RFC 9260, section 6.8)
	}
	check := b[checksum.SCTPOffset:checksum.SCTPHeaderLen]
	crc := binary.LittleEndian.Uint32(check) ^ checksum.SCTP(b)
	putPorts(p, b, r)
	binary.LittleEndian.PutUint32(check, crc^checksum.SCTP(b))
}

func putPorts(p *packet.Packet, b []byte, r *conntrack.Rewrite) {
	binary.BigEndian.PutUint16(b, r.SrcPort)
	binary.BigEndian.PutUint16(b[2:], r.DstPort)
	p.SrcPort, p.DstPort = r.SrcPort, r.DstPort
}

// fits reports whether every byte that the rewrite touches is there.
func fits(p *packet.Packet, r *conntrack.Rewrite) bool {
	v4 := p.Family == 4
	header := ip6Len
	if v4 {
		header = ip4Len
	}
	if r.Src.Is4() != v4 || r.Dst.Is4() != v4 || p.Family != 4 && p.Family != 6 ||
		p.L3 < 0 || p.End > len(p.Frame) || p.L3+header > p.End {
		return false
	}
	if p.L4 == 0 {
		return p.Fragment
	}
	return p.L4 >= p.L3+header && p.L4+transportLen(p, r) <= p.End
}

// transportLen is the length of the transport header, or more than any packet has when
// the transport cannot be rewritten.
func transportLen(p *packet.Packet, r *conntrack.Rewrite) int {
	switch p.Protocol {
	case packet.ProtocolTCP:
		return tcpLen
	case packet.ProtocolUDP:
		return udpLen
	case packet.ProtocolSCTP:
		if !p.Fragment || p.SrcPort == r.SrcPort && p.DstPort == r.DstPort {
			return checksum.SCTPHeaderLen
		}
	}
	return 1 << 20
}
