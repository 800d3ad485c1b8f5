package compile

import (
	"bytes"
	"cmp"
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
)

// key identifies a frontend or a backend.
type key struct {
	network  packet.NetworkID
	addr     packet.Addr
	port     uint16
	protocol uint8
}

func keyOf(n model.NetworkID, a netip.Addr, port uint16, p model.Protocol) key {
	return key{packet.NetworkID(n), packet.AddrFrom(a), port, uint8(p)}
}

func (k *key) compare(o *key) int {
	return cmp.Or(
		cmp.Compare(k.network, o.network), bytes.Compare(k.addr[:], o.addr[:]),
		cmp.Compare(k.port, o.port), cmp.Compare(k.protocol, o.protocol))
}

func (k *key) String() string {
	return netip.AddrPortFrom(k.addr.Netip(), k.port).String() + "/" + model.Protocol(k.protocol).String()
}
