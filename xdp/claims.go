package xdp

import (
	"fmt"
	"maps"

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
	exactBits := filterOf(want)
	if maps.Equal(want, o.claims.have) && *exactBits == o.claimFilter && narrow == o.settings.Narrow {
		return nil
	}
	// What helps to find claims is widened before they change and narrowed afterwards.
	wide, exact := o.settings, o.settings
	wide.Narrow, exact.Narrow = wide.Narrow|narrow, narrow
	bits := filterOf(o.claims.have)
	bits.or(exactBits)
	for _, step := range []func() error{
		func() error { return o.set(wide) },
		func() error { return o.setFilter(bits) },
		func() error { return o.claims.trim(want) },
		func() error { return o.claims.put(want) },
		func() error { return o.setFilter(exactBits) },
		func() error { return o.set(exact) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// TrimClaims removes the claims that are not among these and adds none: for what has to
// stop being claimed before the tables that served it are replaced. SyncClaims then narrows
// what helps to find them.
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
