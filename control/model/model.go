// Package model is the vocabulary of the control plane: what a Service is after
// everything Kubernetes says about it has been resolved for one node.
//
// It owns no behaviour beyond naming and ordering, uses the standard library and
// the fast path's key types only, and is free of clocks, I/O and goroutines.
package model

import (
	"cmp"
	"net/netip"
	"time"
)

// NetworkID names a network; 0 is the default one.
type NetworkID uint32

// Protocol of a Service port.
type Protocol uint8

const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

func (p Protocol) String() string {
	switch p {
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return "unknown"
}

// Name is a namespaced object name.
type Name struct{ Namespace, Name string }

func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Compare orders by namespace, then name.
func (n Name) Compare(m Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, m.Namespace), cmp.Compare(n.Name, m.Name))
}

// Policy is a traffic policy of a Service.
type Policy uint8

const (
	PolicyCluster Policy = iota
	PolicyLocal
)

func (p Policy) String() string {
	if p == PolicyLocal {
		return "Local"
	}
	return "Cluster"
}

// Distribution says how the endpoints nearest to a client are found.
type Distribution uint8

const (
	ByHints       Distribution = iota // by the hints in the EndpointSlices, as every proxy does
	PreferClosest                     // by node, then zone, then anywhere; hints are not looked at
)

func (d Distribution) String() string {
	if d == PreferClosest {
		return "PreferClosest"
	}
	return "ByHints"
}

// FrontendKind says where the address of a frontend came from.
type FrontendKind uint8

const (
	ClusterIP FrontendKind = iota
	NodePort
	ExternalIP
	LoadBalancer
)

func (k FrontendKind) String() string {
	switch k {
	case ClusterIP:
		return "ClusterIP"
	case NodePort:
		return "NodePort"
	case ExternalIP:
		return "ExternalIP"
	case LoadBalancer:
		return "LoadBalancer"
	}
	return "unknown"
}

// Frontend is one address of a Service port.
type Frontend struct {
	Kind     FrontendKind
	Addr     netip.Addr
	Port     uint16
	Protocol Protocol
	AliasOf  netip.Addr // address of the node's own for which Addr is the alias; invalid: Addr is none
}

// Endpoint is one address of an EndpointSlice for one Service port, before any
// choice has been made.
type Endpoint struct {
	Addr        netip.Addr
	Port        uint16
	Ready       bool
	Serving     bool
	Terminating bool
	Node        string // empty: not known, never local
	Zone        string
	ZoneHints   []string
	NodeHints   []string
	Pod         string // namespace/name of the target, for people
}

// Node is a node of the cluster, as far as Services depend on it.
type Node struct {
	Name      string
	Zone      string
	Addresses []netip.Addr              // internal addresses
	NodePorts []netip.Addr              // its own addresses at which node ports are answered
	Aliases   map[netip.Addr]netip.Addr // of all its own addresses, see AliasesOf
	PodCIDRs  []netip.Prefix
}

// Exclusion says why an endpoint is not in a set.
type Exclusion struct {
	Endpoint Endpoint
	Reason   string // a word of docs/reference/eligibility.md
}

// Choice is the outcome of eligibility for one audience of a frontend. The words are
// those of docs/reference/eligibility.md.
type Choice struct {
	Endpoints []Endpoint  // sorted by address and port, no duplicates
	Excluded  []Exclusion // every other endpoint, in the same order
	Tier      string      // which rule chose: "all", "hinted-zone", "same-node", "terminating", ...
	Notes     []string    // why hints that are there were not obeyed
	Any       bool        // some endpoint is usable somewhere in the cluster
}

// ServicePort is one port of a Service with everything that was decided for it.
type ServicePort struct {
	Name      string
	Protocol  Protocol
	Port      uint16
	NodePort  uint16 // that is asked for, whether an address of the node answers it or not; 0: none
	Frontends []Frontend
	Families  map[int]FamilyChoice // key 4 or 6
}

// FamilyChoice holds the sets of one address family. External and Cluster are
// decided only for ports with a frontend other than a ClusterIP.
type FamilyChoice struct {
	Endpoints []Endpoint // all of the family, merged over slices, no duplicates
	Internal  Choice     // for the ClusterIP
	External  Choice     // for every other frontend, clients outside the cluster
	Cluster   Choice     // for every other frontend, clients inside the cluster (short circuit)
}

// Service is one Service after resolution. It is not changed after it was handed out.
type Service struct {
	Name           Name
	UID            string    // tells a Service from another one of the same name; may be empty
	Created        time.Time // an older Service takes a frontend from a younger; zero: not known
	Type           string    // ClusterIP, NodePort, LoadBalancer
	Network        NetworkID
	InternalPolicy Policy
	ExternalPolicy Policy
	Distribution   Distribution
	Affinity       uint32                 // seconds for which a client keeps its endpoint; 0: it does not
	Sources        map[int][]netip.Prefix // by family: who may call the LoadBalancer addresses; no entry: everybody
	HealthPort     uint16                 // where balancers ask whether this node has endpoints; 0: nowhere
	Ports          []ServicePort
}

// PortKind says what a device is to Lace; the numbers are those of the fast path.
type PortKind uint8

const (
	PortHost   PortKind = 1
	PortPod    PortKind = 2
	PortUplink PortKind = 3
)

func (k PortKind) String() string {
	switch k {
	case PortHost:
		return "host"
	case PortPod:
		return "pod"
	case PortUplink:
		return "uplink"
	}
	return "unknown"
}

// Delivery is how packets of Services go on once they are translated.
type Delivery uint8

const (
	Direct Delivery = 0 // straight to the pod or the next hop, past the node's own rules
	Stack  Delivery = 1 // routed by the node's own stack, on the device on which they came
)

func (d Delivery) String() string {
	if d == Stack {
		return "stack"
	}
	return "direct"
}

// Port is a device of this node through which packets of Services come and go.
type Port struct {
	ID        uint16
	Kind      PortKind
	Device    string
	Ifindex   int
	MTU       int
	Network   NetworkID
	HostMAC   [6]byte
	PeerMAC   [6]byte
	Delivery  Delivery     // of new flows from or to what is behind it
	Near      bool         // of an uplink: a veth, behind which this machine's own processors work
	Addresses []netip.Addr // that live behind it: the pod's, or the node's for the host port
}

// Route sends a prefix out of a device.
type Route struct {
	Prefix  netip.Prefix
	Network NetworkID
	Port    uint16
}

// Attachments is what the node's links, addresses, routes and neighbours say.
type Attachments struct {
	Ports  []Port
	Routes []Route
	Node4  netip.Addr // the node's address of the family, for rewritten sources
	Node6  netip.Addr
}

// Problem is one thing that could not be honoured, attributed to one object; all
// other objects go on working.
type Problem struct {
	Kind    string // "Service", "EndpointSlice", "Node", "File", "Port"
	Object  string // namespace/name, a device, or a file and its document
	Field   string // path in the object; may be empty
	Reason  string // one CamelCase word
	Message string // what is wrong and what to do
}

func (p Problem) String() string {
	s := p.Kind + " " + p.Object
	if p.Field != "" {
		s += " " + p.Field
	}
	return s + ": " + p.Message
}
