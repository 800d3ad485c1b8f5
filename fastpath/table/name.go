package table

import (
	"fmt"
	"net/netip"

	"lace-cni.io/lace/fastpath/packet"
)

// Names of records in errors.

func (p *Port) String() string {
	return fmt.Sprintf("port %d (%s)", p.ID, p.Device())
}

func (f *Frontend) String() string {
	return fmt.Sprintf("frontend %s in network %d (id %d)", serviceName(&f.Addr, f.Port, f.Protocol), f.Network, f.ID)
}

func (b *Backend) String() string {
	return fmt.Sprintf("backend %s in network %d (id %d)", serviceName(&b.Addr, b.Port, b.Protocol), b.Network, b.ID)
}

func (a *Address) String() string {
	return fmt.Sprintf("address %s in network %d", a.Addr, a.Network)
}

func (r *Route) String() string {
	bits := int(r.Bits)
	if r.Prefix.Is4() {
		bits -= mappedBits
	}
	return fmt.Sprintf("route %s/%d in network %d", r.Prefix, bits, r.Network)
}

func serviceName(a *packet.Addr, port uint16, protocol uint8) string {
	return netip.AddrPortFrom(a.Netip(), port).String() + "/" + packet.ProtocolName(protocol)
}
