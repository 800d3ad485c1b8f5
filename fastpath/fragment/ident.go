package fragment

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"

	"lace-cni.io/lace/fastpath/packet"
)

// Idents gives identifications to datagrams whose addresses are rewritten. A sender keeps
// its own apart for each pair of addresses and protocol (RFC 6864, section 4; RFC 8200,
// section 4.5). Behind a rewrite that no longer holds: clients that share the node's address
// count each by itself, and so do two backends that answer one client as one VIP, and one
// client's datagrams to two VIPs with one backend. So every rewritten datagram gets a new
// one, from a counter that belongs to its new addresses and protocol, perhaps with others.
// None comes twice before all have come once.
//
// They follow from a secret permutation of the counter, so that nobody who sees one can tell
// the next (RFC 7739).
type Idents struct {
	keys     [4]uint64
	counters [2048]atomic.Uint32
}

func (x *Idents) start() {
	for i := range x.keys {
		x.keys[i] = rand.Uint64() | 1
	}
	for i := range x.counters {
		x.counters[i].Store(rand.Uint32())
	}
}

// Next is the identification of the next datagram between two addresses: 16 bits of IPv4, 32
// of IPv6.
func (x *Idents) Next(src, dst *packet.Addr, protocol uint8) uint32 {
	le := binary.LittleEndian
	h := fold(le.Uint64(src[8:])^x.keys[0], le.Uint64(dst[8:])^x.keys[1]) ^
		fold(le.Uint64(src[:8])^x.keys[2], le.Uint64(dst[:8])^uint64(protocol)^x.keys[3])
	n := x.counters[h%uint64(len(x.counters))].Add(1)
	if src.Is4() {
		return uint32(scramble16(uint16(n), uint16(x.keys[0]>>16)|1))
	}
	return scramble32(n, uint32(x.keys[1]>>16)|1)
}

// scramble16 and scramble32 map one to one: every step can be undone.
func scramble16(n, odd uint16) uint16 {
	n ^= n >> 7
	n *= odd
	n ^= n >> 9
	n *= odd
	return n ^ n>>8
}

func scramble32(n, odd uint32) uint32 {
	n ^= n >> 15
	n *= odd
	n ^= n >> 13
	n *= odd
	return n ^ n>>16
}
