package table

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"

	"lace-cni.io/lace/fastpath/packet"
)

// keys are the secret of one file's hash.
type keys [4]uint64

func newKeys() (k keys) {
	var b [32]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	for i := range k {
		k[i] = binary.LittleEndian.Uint64(b[8*i:]) | 1
	}
	return k
}

// fold multiplies to 128 bits and adds the halves without carry.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// id hashes an id.
func (k *keys) id(id uint32) uint64 { return fold(uint64(id)^k[0], k[1]) }

// addr hashes an address in a network, and up to 24 bits more of a key.
func (k *keys) addr(net packet.NetworkID, a *packet.Addr, more uint32) uint64 {
	h := fold(binary.LittleEndian.Uint64(a[:8])^k[0], binary.LittleEndian.Uint64(a[8:])^k[1])
	return fold(h^k[2], (uint64(net)<<24|uint64(more))^k[3])
}

// service is the rest of a frontend's key.
func service(proto uint8, port uint16) uint32 { return uint32(port)<<8 | uint32(proto) }
