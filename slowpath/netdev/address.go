package netdev

import "net/netip"

// Address is one of the node's own addresses.
type Address struct {
	Device    int
	Prefix    netip.Prefix // the address with its length, host bits kept
	Scope     Scope
	Secondary bool // a further IPv4 address of a prefix, or a temporary IPv6 address
	Tentative bool // IPv6: not usable as a source yet
}

// Neighbour is what ARP or NDP knows about an address on a link.
type Neighbour struct {
	Device    int
	Addr      netip.Addr
	MAC       MAC
	Permanent bool // set by somebody, not learned
}

// Station is one entry of a bridge's forwarding database: behind which of its
// ports a MAC address is.
type Station struct {
	Bridge int
	Port   int
	MAC    MAC
}

// Offloads are the features of a device that matter to AF_XDP: with transmit
// checksum offload on, a veth hands out packets whose checksum nobody has computed.
type Offloads struct {
	TxChecksum   bool // ETHTOOL_GTXCSUM
	RxChecksum   bool // ETHTOOL_GRXCSUM
	Segmentation bool // ETHTOOL_GTSO
	Generic      bool // ETHTOOL_GGSO
	GRO          bool // ETHTOOL_GGRO
}
