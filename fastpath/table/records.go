package table

import "lace-cni.io/lace/fastpath/packet"

// PortKind says what a port is for the packets that come in on it.
type PortKind uint8

const (
	PortHost   PortKind = 1 // the node itself, behind lace0
	PortPod    PortKind = 2 // host side of a pod's veth
	PortUplink PortKind = 3 // towards other nodes and the outside
)

// PortFlags say how packets of a port are treated.
type PortFlags uint8

const (
	// PortStack: the node's own stack routes new flows of clients and backends behind the
	// port. Without it they are delivered past the stack.
	PortStack PortFlags = 1 << iota
	// PortNear, of an uplink: it is no wire but a veth, whose other end's packets are processed
	// by this machine's processors, several of one flow at a time. Those of hosts and pods always are.
	PortNear
)

// HostPort is the fixed id of the node itself. 0 is no port; others start at 2.
const HostPort uint16 = 1

// MaxPorts bounds port ids: they index a BPF array.
const MaxPorts = 4096

// Port is a device through which packets come and go.
type Port struct {
	ID         uint16
	Generation uint16 // bumped when the same id starts to mean another device, address or next hop
	Kind       PortKind
	Flags      PortFlags
	_          [2]byte
	Ifindex    uint32
	MTU        uint32
	Network    packet.NetworkID
	HostMAC    [6]byte  // what the peer sees as its gateway: veth host side, or the bridge above it
	PeerMAC    [6]byte  // the pod's own; zero for uplinks, whose next hop the kernel resolves
	Name       [16]byte // device name, zero padded
}

// Frontend is one address, protocol and port of a Service in one network.
type Frontend struct {
	ID         uint32 // stable over snapshots as long as the key exists
	Network    packet.NetworkID
	Addr       packet.Addr
	Port       uint16
	Generation uint16 // bumped when all flows decided before must be looked at again
	Protocol   uint8
	Flags      FrontendFlags
	_          [2]byte
	Inside     Set    // for clients inside the cluster: pods and nodes
	Outside    Set    // for everybody else
	Session    uint64 // the Service port and family whose clients are remembered; frontends share it
	Keep       Run    // in the list of backend ids: those that may keep flows of this frontend
	Sources    Run    // in the list of ranges: who may call it, when it is Restricted
	Affinity   uint32 // seconds for which a client is remembered after its last new flow; 0: it is not

	// AliasOf is the id of a frontend at an address of the node itself for which this one
	// stands: the node's own sockets that call that one are sent here, and nobody else is
	// served. 0: it stands for itself.
	AliasOf uint32
}

// FrontendFlags says how much of its address a frontend takes, and from whom.
type FrontendFlags uint8

const (
	// Narrow: of its address only this protocol and port is Lace's; the rest is the node's
	// own business.
	Narrow FrontendFlags = 1 << iota
	// Restricted: only clients in Sources may call it.
	Restricted

	allFlags = Narrow | Restricted
)

// MaxAffinity is the longest time for which a client is remembered, in seconds.
const MaxAffinity = 86400

// Run is a stretch of a list of the snapshot.
type Run struct{ First, Count uint32 }

// Range is a stretch of addresses of one family, both ends included. The ranges of a
// frontend are sorted and apart from each other.
type Range struct{ First, Last packet.Addr }

// Empty says what becomes of a packet when its set has no backend.
type Empty uint8

const (
	Refuse Empty = 0 // no endpoint anywhere: answer
	Drop   Empty = 1 // policy Local, endpoints elsewhere: drop
)

// Set is a run in the snapshot's list of backend ids.
type Set struct {
	First, Count uint32
	Empty        Empty
	_            [3]byte
}

// Backend is one endpoint address, protocol and port in one network.
type Backend struct {
	ID         uint32 // stable over snapshots as long as the key exists; 0 is none
	Network    packet.NetworkID
	Addr       packet.Addr
	Port       uint16
	Generation uint16 // bumped when it stops or resumes serving, or leaves a frontend and serves others
	Protocol   uint8
	Serving    uint8 // 1: may keep flows (ready, or terminating and serving)
	_          [6]byte
}

// Address is one address that lives on this node, and the port it lives behind.
// Source checks and delivery both go by it.
type Address struct {
	Addr    packet.Addr
	Network packet.NetworkID
	Port    uint16
	_       [2]byte
}

// Route sends a prefix through a port. IPv4 prefixes are v4-mapped, so that their
// length is 96 to 128.
type Route struct {
	Prefix  packet.Addr
	Network packet.NetworkID
	Port    uint16
	Bits    uint8
	_       [1]byte
}

// Settings of the node that the fast path needs. Times are nanoseconds.
type Settings struct {
	Lane             uint8 // 1: established flows may run in the kernel
	_                [3]byte
	HalfOpenMax      uint32 // bound of half-open TCP flows
	SourcePortFirst  uint16 // range for rewritten source ports, inclusive
	SourcePortLast   uint16
	AnswersPerSecond uint32 // rate limit of resets and ICMP errors, per worker
	NodeAddr4        packet.Addr
	NodeAddr6        packet.Addr // zero: the node has none of that family
	Timeouts         Timeouts
}

// Timeouts after which an idle flow is forgotten.
type Timeouts struct {
	TCPHalfOpen    int64
	TCPEstablished int64
	TCPClosing     int64 // one FIN seen
	TCPClosed      int64 // both FINs or a reset seen: how long the tombstone stands
	UDPNew         int64 // no reply yet
	UDP            int64
	SCTP           int64
}
