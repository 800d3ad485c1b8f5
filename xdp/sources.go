package xdp

import (
	"fmt"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// source is struct source of xdp/bpf/source.h.
type source struct {
	Network uint32
	Addr    packet.Addr
}

func (s source) String() string { return fmt.Sprintf("network %d, %s", s.Network, s.Addr) }

// SyncSources makes the addresses that live on this node exactly these. Claimed packets
// from a pod or the node pass only with an address of their port, packets from an uplink
// only with an address that is not among these.
func (o *Objects) SyncSources(addresses []table.Address) error {
	want := make(map[source]uint32, len(addresses))
	for _, a := range addresses {
		want[source{Network: uint32(a.Network), Addr: a.Addr}] = uint32(a.Port)
	}
	if err := o.sources.put(want); err != nil {
		return err
	}
	return o.sources.trim(want)
}
