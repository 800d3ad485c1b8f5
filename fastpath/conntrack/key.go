package conntrack

import (
	"encoding/binary"
	"math/bits"

	"lace-cni.io/lace/fastpath/packet"
)

// key is a tuple in the form in which slots hold it.
type key struct {
	word uint64 // source port | destination port<<16 (as packets hold them) | protocol<<32 | network<<40 | v6<<62 | used<<63
	low  uint64
	high [3]uint64 // zero for IPv4
}

const (
	keyNetworkShift = 40
	keyV6           = uint64(1) << 62
	keyUsed         = uint64(1) << 63
)

// encode fills k. It reports false for a tuple that no slot can hold: addresses of two
// families, or a network id above packet.MaxNetworkID.
func (k *key) encode(t *Tuple) bool {
	k.word = uint64(portWord(t.SrcPort)) | uint64(portWord(t.DstPort))<<16 |
		uint64(t.Protocol)<<32 | uint64(t.Network)<<keyNetworkShift | keyUsed
	v6 := pack(&t.Src, &t.Dst, &k.low, &k.high)
	if v6 {
		k.word |= keyV6
	}
	return t.Network <= packet.MaxNetworkID && t.Src.Is4() == !v6 && t.Dst.Is4() == !v6
}

// decode is the reverse of encode.
func (k *key) decode(t *Tuple) {
	t.SrcPort, t.DstPort = portOf(uint16(k.word)), portOf(uint16(k.word>>16))
	t.Protocol = uint8(k.word >> 32)
	t.Network = packet.NetworkID(k.word>>keyNetworkShift) & packet.MaxNetworkID
	if k.v6() {
		unpack6(k.low, &k.high, &t.Src, &t.Dst)
	} else {
		unpack4(k.low, &t.Src, &t.Dst)
	}
}

func (k *key) v6() bool { return k.word&keyV6 != 0 }

// portWord and portOf turn a port of host order into the word of a packet and back.
func portWord(p uint16) uint16 { return bits.ReverseBytes16(p) }
func portOf(w uint16) uint16   { return bits.ReverseBytes16(w) }

// pack splits two addresses into the words of a slot, and reports whether a is IPv6.
// high is left zero for IPv4.
func pack(a, b *packet.Addr, low *uint64, high *[3]uint64) (v6 bool) {
	le := binary.LittleEndian
	a1, b1 := le.Uint64(a[8:]), le.Uint64(b[8:])
	*low = a1>>32 | b1&^0xffffffff
	if a.Is4() {
		*high = [3]uint64{}
		return false
	}
	b0 := le.Uint64(b[:])
	*high = [3]uint64{le.Uint64(a[:]), a1&0xffffffff | b0<<32, b0>>32 | b1<<32}
	return true
}

func unpack4(low uint64, a, b *packet.Addr) {
	le := binary.LittleEndian
	le.PutUint64(a[:], 0)
	le.PutUint64(a[8:], 0xffff0000|low<<32)
	le.PutUint64(b[:], 0)
	le.PutUint64(b[8:], 0xffff0000|low&^0xffffffff)
}

func unpack6(low uint64, high *[3]uint64, a, b *packet.Addr) {
	le := binary.LittleEndian
	le.PutUint64(a[:], high[0])
	le.PutUint64(a[8:], high[1]&0xffffffff|low<<32)
	le.PutUint64(b[:], high[1]>>32|high[2]<<32)
	le.PutUint64(b[8:], high[2]>>32|low&^0xffffffff)
}

// hashKeys are secret numbers, none of them zero.
type hashKeys [keysInHash]uint32

// nh is one step of a universal hash (NH, as in UMAC, RFC 4418): for a pair of inputs that
// differ, the keys for which their products agree are few and unknown to the sender.
func (h *hashKeys) nh(a, b uint32, i int) uint64 {
	return uint64(a+h[i]) * uint64(b+h[i+1])
}

// hash is the same function as flow_hash in xdp/bpf/flow.h. Its low half names the first
// bucket and its high half the second, bits from nearShift on the near one; the highest
// byte is the tag.
func (h *hashKeys) hash(k *key) uint64 {
	x := h.nh(uint32(k.word), uint32(k.word>>32), 0) + h.nh(uint32(k.low), uint32(k.low>>32), 2)
	if k.v6() {
		x += h.nh(uint32(k.high[0]), uint32(k.high[0]>>32), 4) +
			h.nh(uint32(k.high[1]), uint32(k.high[1]>>32), 6) +
			h.nh(uint32(k.high[2]), uint32(k.high[2]>>32), 8)
	}
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// homes are the buckets in which a tuple may live, some of which may be the same, and its
// tag. The near ones lie together, so that few flows occupy few pages of memory.
type homes struct {
	near, first, second uint32
	tag                 uint8
}

func (r *Reader) homesOf(k *key) homes {
	h := r.keys.hash(k)
	return homes{uint32(h>>nearShift) & nearMask & r.mask, uint32(h) & r.mask, uint32(h>>32) & r.mask, tagOf(h)}
}

// buckets in the order in which they are looked at.
func (h *homes) buckets() [3]uint32 { return [3]uint32{h.near, h.first, h.second} }
