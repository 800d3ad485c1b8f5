package nat

import (
	"lace-cni.io/lace/fastpath/checksum"
	"lace-cni.io/lace/fastpath/packet"
)

const (
	ip4TTL = 8
	ip6Hop = 7
)

// DecrementTTL takes one from the TTL or hop limit, in the frame and in p, as a router
// does. It reports false and changes nothing when that would leave none (RFC 1812,
// section 5.3.1; RFC 8200, section 3), or when the header does not fit in the frame.
func DecrementTTL(p *packet.Packet) bool {
	if p.TTL <= 1 || p.L3 < 0 || p.L3+ip4Len > len(p.Frame) {
		return false
	}
	h := p.Frame[p.L3:]
	if p.Family == 4 {
		old := checksum.Get(h[ip4TTL:])
		h[ip4TTL]--
		diff := checksum.Plus(^old, checksum.Get(h[ip4TTL:]))
		checksum.Put(h[ip4Check:], checksum.Update(checksum.Get(h[ip4Check:]), diff))
	} else {
		h[ip6Hop]--
	}
	p.TTL--
	return true
}
