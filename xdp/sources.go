package xdp

import (
	"errors"
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

// AddSources adds the addresses that live on this node, and those that moved to another port,
// and removes none: a new port's packets must find theirs from the first one on.
func (o *Objects) AddSources(addresses []table.Address) error {
	return o.sources.put(sourceSet(addresses))
}

// SyncSources makes the addresses that live on this node exactly these. Claimed packets
// from a pod or the node pass only with an address of their port, packets from an uplink
// only with an address that is not among these. It comes after SyncPorts, for a port keeps
// its addresses as long as it is one; AddSources comes before.
func (o *Objects) SyncSources(addresses []table.Address) error {
	want := sourceSet(addresses)
	err := o.sources.trim(want) // first: what goes makes room
	return errors.Join(err, o.sources.put(want))
}

func sourceSet(addresses []table.Address) map[source]uint32 {
	set := make(map[source]uint32, len(addresses))
	for _, a := range addresses {
		set[source{Network: uint32(a.Network), Addr: a.Addr}] = uint32(a.Port)
	}
	return set
}
