package nat

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/checksum"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

const icmpCheck = 2 // RFC 792, RFC 4443 section 2.1

// ApplyError rewrites an ICMP error about a packet of a flow, and the packet q that it
// quotes, for the end to which the error is on its way: f is the direction of the flow in
// which it travels. The quoted packet went the other way, so that it becomes what that end
// had sent. The error's destination is translated, its source only when it speaks for
// f's own source; a router's stays. All checksums are carried on as far as they are there: the
// error's own, the quoted IP header's, and the quoted transport's, which may be cut off.
//
// It reports false and leaves frame and p alone when q is not a packet of f, p does not go to
// who sent it, or the rewrite is for the other family. p follows; q does not.
func ApplyError(p *packet.Packet, q *packet.Quote, f *conntrack.Flow) bool {
	if !quotes(p, q, f) {
		return false
	}
	message := p.Frame[p.L4:p.End]
	check := message[icmpCheck : icmpCheck+2]
	region := p.Frame[q.L3:min(q.L4+tcpLen, q.End)]
	before := checksum.Add(0, region)
	rewriteQuote(p.Frame[:q.End], q, &f.Rewrite)
	diff := checksum.Plus(^before, checksum.Add(0, region))

	src := p.Src
	if src == f.Src {
		src = f.Rewrite.Src
	}
	outer := checksum.Plus(checksum.Diff(p.Src[:], src[:]), checksum.Diff(p.Dst[:], f.Rewrite.Dst[:]))
	h := p.Frame[p.L3:]
	if p.Family == 4 {
		copy(h[ip4Src:ip4Dst], src[12:])
		copy(h[ip4Dst:ip4Len], f.Rewrite.Dst[12:])
		checksum.Put(h[ip4Check:], checksum.Update(checksum.Get(h[ip4Check:]), outer))
	} else {
		copy(h[ip6Src:ip6Dst], src[:])
		copy(h[ip6Dst:ip6Len], f.Rewrite.Dst[:])
		diff = checksum.Plus(diff, outer) // the pseudo header
	}
	checksum.Put(check, checksum.Update(checksum.Get(check), diff))
	p.Src, p.Dst = src, f.Rewrite.Dst
	return true
}

// quotes reports whether q is a packet that the other direction of f brought forth, and
// lies in p.
func quotes(p *packet.Packet, q *packet.Quote, f *conntrack.Flow) bool {
	v4 := p.Family == 4
	return q.Family == p.Family && f.Rewrite.Src.Is4() == v4 && f.Rewrite.Dst.Is4() == v4 &&
		p.Dst == f.Dst && q.Src == f.Dst && q.Dst == f.Src && q.SrcPort == f.DstPort && q.DstPort == f.SrcPort && q.Protocol == f.Protocol &&
		p.L3 >= 0 && p.L3 < p.L4 && p.L4+packet.ICMPLen <= q.L3 && q.L3 < q.L4 && q.L4+4 <= q.End && q.End <= p.End
}

// rewriteQuote exchanges the ends of r: what went to r.Src came from r.Dst.
func rewriteQuote(frame []byte, q *packet.Quote, r *conntrack.Rewrite) {
	h := frame[q.L3:]
	if q.Family == 4 {
		copy(h[ip4Src:ip4Dst], r.Dst[12:])
		copy(h[ip4Dst:ip4Len], r.Src[12:])
		checksum.Put(h[ip4Check:], checksum.Update(checksum.Get(h[ip4Check:]), r.L3))
	} else {
		copy(h[ip6Src:ip6Dst], r.Dst[:])
		copy(h[ip6Dst:ip6Len], r.Src[:])
	}
	b := frame[q.L4:]
	switch q.Protocol {
	case packet.ProtocolTCP:
		if len(b) >= tcpCheck+2 {
			check := b[tcpCheck : tcpCheck+2]
			checksum.Put(check, checksum.Update(checksum.Get(check), r.L4))
		}
	case packet.ProtocolUDP:
		if len(b) >= udpCheck+2 && checksum.Get(b[udpCheck:]) != 0 {
			check := b[udpCheck : udpCheck+2]
			checksum.Put(check, checksum.NonZero(checksum.Update(checksum.Get(check), r.L4)))
		}
	case packet.ProtocolSCTP:
		if len(b) >= checksum.SCTPHeaderLen && q.Transport >= checksum.SCTPHeaderLen {
			check := b[checksum.SCTPOffset:checksum.SCTPHeaderLen]
			diff := checksum.SCTPDiff([4]byte(b[:4]), portBytes(r.DstPort, r.SrcPort), q.Transport)
			binary.LittleEndian.PutUint32(check, binary.LittleEndian.Uint32(check)^diff)
		}
	}
	binary.BigEndian.PutUint16(b, r.DstPort)
	binary.BigEndian.PutUint16(b[2:], r.SrcPort)
}

func portBytes(src, dst uint16) (b [4]byte) {
	binary.BigEndian.PutUint16(b[:], src)
	binary.BigEndian.PutUint16(b[2:], dst)
	return b
}
