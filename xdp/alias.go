package xdp

import (
	"errors"
	"fmt"

	"lace-cni.io/lace/fastpath/packet"
)

// Alias sends the node's own sockets that call Own, one of the node's addresses, at this
// protocol and port to another address at the same port, which leads to the trunk.
type Alias struct {
	Own, Alias packet.Addr
	Protocol   uint8
	Port       uint16 // host order
}

// place is struct place of xdp/bpf/alias.h.
type place struct {
	Addr     packet.Addr
	Port     [2]uint8 // network order
	Protocol uint8
	Pad      uint8
}

func (p place) String() string {
	return fmt.Sprintf("%s port %d protocol %d", p.Addr, uint16(p.Port[0])<<8|uint16(p.Port[1]), p.Protocol)
}

// aliases are what the programs of sockets go by.
type aliases struct {
	places map[place]packet.Addr // of own addresses to their aliases
	names  map[place]packet.Addr // and back
}

func aliasSet(all []Alias) aliases {
	a := aliases{places: make(map[place]packet.Addr, len(all)), names: make(map[place]packet.Addr, len(all))}
	for _, one := range all {
		at := place{Addr: one.Own, Port: [2]uint8{uint8(one.Port >> 8), uint8(one.Port)}, Protocol: one.Protocol}
		a.places[at] = one.Alias
		at.Addr = one.Alias
		a.names[at] = one.Own
	}
	return a
}

// SyncAliases makes the aliases exactly these. It comes after everything by which packets to
// an alias are decided. Without AttachSockets they are kept until it succeeds.
func (o *Objects) SyncAliases(all []Alias) error {
	o.sockets.want = aliasSet(all)
	if !o.sockets.loaded {
		return nil
	}
	return o.sockets.fill()
}

// TrimAliases removes the places that are not among these and adds none: sockets must stop
// being sent to an alias before it stops being served. How an alias is shown stays, for there
// are connections to it.
func (o *Objects) TrimAliases(all []Alias) error {
	if !o.sockets.loaded {
		return nil
	}
	return o.sockets.places.trim(aliasSet(all).places)
}

// fill writes what is wanted; a socket is never sent to an alias that it could not name.
func (s *sockets) fill() error {
	return errors.Join(s.places.trim(s.want.places), s.names.put(s.want.names), s.places.put(s.want.places), s.names.trim(s.want.names))
}
