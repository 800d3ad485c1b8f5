package fragment

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"lace-cni.io/lace/fastpath/packet"
)

// AnyUplink is the Port of keys of fragments that came in on an uplink. Uplinks are one
// way into the node: routers on the way may send the first fragment, which has ports, by
// one and the others by another.
const AnyUplink uint16 = 0

// Key names a datagram whose fragments are to meet (RFC 791, section 3.2; RFC 8200,
// section 4.5), at one place of the node: fragments of different ports and networks never
// do.
type Key struct {
	Src, Dst packet.Addr
	Network  packet.NetworkID
	ID       uint32
	Port     uint16 // id of the port on which it is met, or AnyUplink
	Protocol uint8  // IPv4 only; IPv6 fragments of one datagram may differ in it
	Egress   bool   // met on its way out of the port
}

// secret keys the hash, so that nobody can aim at one chain.
type secret [6]uint64

func newSecret() (s secret) {
	for i := range s {
		s[i] = rand.Uint64() | 1
	}
	return s
}

func (s *secret) hash(k *Key) uint64 {
	le := binary.LittleEndian
	egress := uint64(0)
	if k.Egress {
		egress = 1
	}
	h := fold(le.Uint64(k.Src[:8])^s[0], le.Uint64(k.Src[8:])^s[1])
	h ^= fold(le.Uint64(k.Dst[:8])^s[2], le.Uint64(k.Dst[8:])^s[3])
	h ^= fold(uint64(k.Network)<<32^uint64(k.ID)^s[4], uint64(k.Port)|uint64(k.Protocol)<<16|egress<<24^s[5])
	return fold(h^s[1], s[4])
}

// fold multiplies into 128 bits and adds the halves without carry.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
