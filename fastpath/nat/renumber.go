package nat

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/checksum"
	"lace-cni.io/lace/fastpath/packet"
)

const (
	ip4ID  = 4 // RFC 791, section 3.1
	fragID = 4 // RFC 8200, section 4.5
)

// Renumber gives a fragment another identification, in the frame and in p. It reports false
// and changes nothing when p is no fragment. IPv4 has the low 16 bits of id.
func Renumber(p *packet.Packet, id uint32) bool {
	if !p.Fragment || p.L3 < 0 || p.L3+ip4Len > len(p.Frame) {
		return false
	}
	if p.Family == 4 {
		h := p.Frame[p.L3:]
		old := checksum.Get(h[ip4ID:])
		binary.BigEndian.PutUint16(h[ip4ID:], uint16(id))
		diff := checksum.Plus(^old, checksum.Get(h[ip4ID:]))
		checksum.Put(h[ip4Check:], checksum.Update(checksum.Get(h[ip4Check:]), diff))
		p.ID = id & 0xffff
		return true
	}
	at := p.FragmentHeader()
	if at == 0 {
		return false
	}
	binary.BigEndian.PutUint32(p.Frame[at+fragID:], id)
	p.ID = id
	return true
}
