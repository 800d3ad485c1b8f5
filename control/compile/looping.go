package compile

import (
	"net/netip"

	"lace-cni.io/lace/control/model"
)

// Holding is an address that a Service has.
type Holding struct {
	Service model.Name
	Addr    netip.Addr
}

// Looping names the Service that has endpoints at the address of one, for each such Service and
// address, as of the last snapshot; of several the first by name. Without any it costs nothing.
func (c *Compiler) Looping() map[Holding]model.Name {
	if len(c.looping) == 0 {
		return nil
	}
	out, serviceAt := map[Holding]model.Name{}, c.serviceAt()
	for name, s := range c.services {
		for _, r := range s.refs {
			if !r.vip {
				continue
			}
			at := Holding{serviceAt(r.spot()), r.addr.Netip()}
			if was, known := out[at]; !known || name.Compare(was) < 0 {
				out[at] = name
			}
		}
	}
	return out
}
