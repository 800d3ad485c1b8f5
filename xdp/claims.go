package xdp

import (
	"fmt"

	"lace-cni.io/lace/fastpath/packet"
)

// Claim is a destination whose packets are Lace's. Protocol 0 claims the whole address.
type Claim struct {
	Network  packet.NetworkID
	Addr     packet.Addr
	Protocol uint8
	Port     uint16 // host order; 0 with Protocol 0
}

// claim is struct claim of xdp/bpf/claim.h.
type claim struct {
	Network  uint32
	Addr     packet.Addr
	Port     [2]uint8 // network order
	Protocol uint8
	Pad      uint8
}

func (c claim) String() string {
	return fmt.Sprintf("network %d, %s port %d protocol %d", c.Network, c.Addr, uint16(c.Port[0])<<8|uint16(c.Port[1]), c.Protocol)
}

// SyncClaims makes the claims exactly these. New ones should come after the tables that can
// serve them are in force; see TrimClaims for the others.
func (o *Objects) SyncClaims(claims []Claim) error {
	want, narrow := claimSet(claims)
	s := o.settings
	s.Narrow |= narrow // before the first such claim, and dropped only after the last
	if err := o.set(s); err != nil {
		return err
	}
	if err := o.claims.trim(want); err != nil {
		return err
	}
	if err := o.claims.put(want); err != nil {
		return err
	}
	s.Narrow = narrow
	return o.set(s)
}

// TrimClaims removes the claims that are not among these and adds none: for what has to
// stop being claimed before the tables that served it are replaced.
func (o *Objects) TrimClaims(claims []Claim) error {
	want, _ := claimSet(claims)
	return o.claims.trim(want)
}

func claimSet(claims []Claim) (want map[claim]uint32, narrow uint32) {
	want = make(map[claim]uint32, len(claims))
	for _, c := range claims {
		k := claim{Network: uint32(c.Network), Addr: c.Addr, Protocol: c.Protocol}
		if c.Protocol != 0 {
			k.Port = [2]uint8{uint8(c.Port >> 8), uint8(c.Port)}
			narrow = 1
		}
		want[k] = 1
	}
	return want, narrow
}
