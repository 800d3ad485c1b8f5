package netdev

import (
	"net"
	"net/netip"
)

// MAC is an Ethernet address in wire order.
type MAC [6]byte

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// NoNamespace is the Link.PeerNamespace of a device whose peer is in the same
// network namespace, or which has no peer.
const NoNamespace = -1

// Kinds of devices that mean something to Lace; the names are the kernel's.
const (
	KindVeth   = "veth"
	KindBridge = "bridge"
)

// Link is one network device.
type Link struct {
	Index         int
	Name          string
	Kind          string // "veth", "bridge", "vlan", …; empty for hardware
	MAC           MAC
	MTU           int
	Up            bool // administratively up
	Running       bool // has carrier
	Loopback      bool
	Ethernet      bool // carries Ethernet frames (ARPHRD_ETHER)
	Master        int  // index of the bridge or bond above, 0 for none
	Peer          int  // index of the other end of a veth, in the peer's namespace; 0 unknown
	PeerNamespace int  // id of the peer's network namespace as seen from this one; NoNamespace
	Queues        int  // receive queues
}

// LeadsOut reports whether l is a veth whose other end lives in another network
// namespace, as a pod's does.
func (l *Link) LeadsOut() bool {
	return l.Kind == KindVeth && l.PeerNamespace != NoNamespace && l.Peer != 0
}

// Peer is the other end of a veth in its own namespace.
type Peer struct {
	MAC       MAC
	Up        bool
	Addresses []netip.Addr // of global scope, in the kernel's order
}
