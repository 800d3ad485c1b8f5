package affinity

import (
	"encoding/binary"
	"math/bits"

	"lace-cni.io/lace/fastpath/packet"
)

// Key is what a backend is remembered by.
type Key struct {
	Client  packet.Addr
	Session uint64 // of the Service port, see table.Frontend
	Network packet.NetworkID
}

// record is one client's, as it lies in memory.
type record struct {
	client  packet.Addr
	session uint64
	network uint32
	backend uint32 // 0: the record is empty
	last    uint32 // when the client last opened a flow, in ticks
	check   uint32 // over all of the above
}

func (r *record) is(k *Key) bool {
	return r.session == k.Session && r.client == k.Client && r.network == uint32(k.Network)
}

// fold multiplies to 128 bits and adds the halves without carry.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hash of a key under the table's secret.
func (t *Table) hash(k *Key) uint64 {
	s := &t.head.Secret
	le := binary.LittleEndian
	h := fold(le.Uint64(k.Client[:8])^s[0], le.Uint64(k.Client[8:])^s[1])
	return fold(h^s[2]^uint64(k.Network), k.Session^s[3])
}

// sum is the checksum of a record; never 0, so that memory that was never written holds no
// record.
func (t *Table) sum(r *record) uint32 {
	s := &t.head.Secret
	le := binary.LittleEndian
	h := fold(le.Uint64(r.client[:8])^s[1], le.Uint64(r.client[8:])^s[2])
	h = fold(h^r.session, s[3]^uint64(r.network)<<32^uint64(r.backend))
	return uint32(fold(h^uint64(r.last), s[0])) | 1
}

// used reports whether the record holds something, and all of it.
func (t *Table) used(r *record) bool { return r.backend != 0 && r.check == t.sum(r) }
