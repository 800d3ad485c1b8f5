package table

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/packet"
)

// Snapshot is one immutable set of tables. Any number of goroutines may use it at once.
// What its methods return points into its memory: it may be read until Close, and must
// never be written (memory from Open then faults).
type Snapshot struct {
	header *header
	tables
	mapping []byte // to be unmapped by Close; nil when the memory is the Go heap's
}

// tables are the sections of a file.
type tables struct {
	ports         []Port
	portIndex     []uint16
	frontends     []Frontend
	frontendIndex index
	frontendIDs   index
	vips          index
	backendIDs    []uint32
	ranges        []Range
	backends      []Backend
	backendIndex  index
	addresses     []Address
	addressIndex  index
	routes        []Route
	spans         []span
}

// Generation numbers the snapshots of a node.
func (s *Snapshot) Generation() uint64 { return s.header.Generation }

// CreatedAt is when the contents were complete, in nanoseconds since 1970.
func (s *Snapshot) CreatedAt() int64 { return s.header.Created }

// Settings of the node.
func (s *Snapshot) Settings() *Settings { return &s.header.Settings }

// Contents gives back what was encoded. The slices point into the snapshot.
func (s *Snapshot) Contents() Contents {
	return Contents{
		Generation: s.header.Generation,
		Created:    s.header.Created,
		Settings:   s.header.Settings,
		Ports:      s.ports,
		Frontends:  s.frontends,
		BackendIDs: s.backendIDs,
		Ranges:     s.ranges,
		Backends:   s.backends,
		Addresses:  s.addresses,
		Routes:     s.routes,
	}
}

// Port finds a port by id, nil when there is none.
func (s *Snapshot) Port(id uint16) *Port {
	if int(id) >= len(s.portIndex) {
		return nil
	}
	n := s.portIndex[id]
	if n == 0 {
		return nil
	}
	return &s.ports[n-1]
}

// Ports lists all ports, in the order in which they were encoded; so do the lists below.
func (s *Snapshot) Ports() []Port { return s.ports }

// Frontend finds the frontend that a packet is addressed to, nil when there is none.
func (s *Snapshot) Frontend(net packet.NetworkID, addr *packet.Addr, proto uint8, port uint16) *Frontend {
	x := s.frontendIndex
	for i := x.start(s.header.Keys.addr(net, addr, service(proto, port))); x[i] != 0; i = x.next(i) {
		f := &s.frontends[x[i]-1]
		if f.Port == port && f.Protocol == proto && f.Network == net && f.Addr == *addr {
			return f
		}
	}
	return nil
}

// FrontendByID finds a frontend by its stable id, nil when there is none.
func (s *Snapshot) FrontendByID(id uint32) *Frontend {
	x := s.frontendIDs
	for i := x.start(s.header.Keys.id(id)); x[i] != 0; i = x.next(i) {
		if f := &s.frontends[x[i]-1]; f.ID == id {
			return f
		}
	}
	return nil
}

// Frontends lists all frontends.
func (s *Snapshot) Frontends() []Frontend { return s.frontends }

// IsVIP reports whether any frontend has the address whole, so that every port of it is
// Lace's.
func (s *Snapshot) IsVIP(net packet.NetworkID, addr *packet.Addr) bool { return s.vip(net, addr) >= 0 }

// vip is the position of the first frontend that has the address whole, or -1.
func (s *Snapshot) vip(net packet.NetworkID, addr *packet.Addr) int {
	x := s.vips
	for i := x.start(s.header.Keys.addr(net, addr, 0)); x[i] != 0; i = x.next(i) {
		pos := int(x[i]) - 1
		if f := &s.frontends[pos]; f.Network == net && f.Addr == *addr {
			return pos
		}
	}
	return -1
}

// VIPs yields every address that a frontend has whole once, in the order of the first
// frontends that have them, until yield returns false. It can be ranged over. What is Lace's
// besides are the Narrow frontends.
func (s *Snapshot) VIPs(yield func(packet.NetworkID, packet.Addr) bool) {
	for i := range s.frontends {
		f := &s.frontends[i]
		if f.Flags&Narrow == 0 && s.vip(f.Network, &f.Addr) == i && !yield(f.Network, f.Addr) {
			return
		}
	}
}

// Set is the list of backend ids of one of this snapshot's frontends; each of them is
// known to Backend. A set that does not fit the list, which only another snapshot's can
// be, is nil.
func (s *Snapshot) Set(set Set) []uint32 { return part(s.backendIDs, Run{set.First, set.Count}) }

// Keep is the list of backends that may keep flows of one of this snapshot's frontends,
// whether they are offered to new ones or not.
func (s *Snapshot) Keep(f *Frontend) []uint32 { return part(s.backendIDs, f.Keep) }

// Backend finds a backend by its stable id, nil when there is none.
func (s *Snapshot) Backend(id uint32) *Backend {
	if pos := s.backend(id); pos >= 0 {
		return &s.backends[pos]
	}
	return nil
}

func (s *Snapshot) backend(id uint32) int {
	x := s.backendIndex
	for i := x.start(s.header.Keys.id(id)); x[i] != 0; i = x.next(i) {
		if pos := int(x[i]) - 1; s.backends[pos].ID == id {
			return pos
		}
	}
	return -1
}

// Backends lists all backends.
func (s *Snapshot) Backends() []Backend { return s.backends }

// Address finds an address that lives on this node, nil when it does not.
func (s *Snapshot) Address(net packet.NetworkID, addr *packet.Addr) *Address {
	x := s.addressIndex
	for i := x.start(s.header.Keys.addr(net, addr, 0)); x[i] != 0; i = x.next(i) {
		if a := &s.addresses[x[i]-1]; a.Network == net && a.Addr == *addr {
			return a
		}
	}
	return nil
}

// Addresses lists all addresses that live on this node.
func (s *Snapshot) Addresses() []Address { return s.addresses }

// Route is the port of the longest prefix that holds the address; false when no prefix
// does. IPv6 prefixes never hold an IPv4 address.
func (s *Snapshot) Route(net packet.NetworkID, addr *packet.Addr) (port uint16, ok bool) {
	hi, lo := binary.BigEndian.Uint64(addr[:8]), binary.BigEndian.Uint64(addr[8:])
	first, end := 0, len(s.spans) // the first span behind the address lies in between
	for first < end {
		if mid := (first + end) / 2; s.spans[mid].after(net, hi, lo) {
			end = mid
		} else {
			first = mid + 1
		}
	}
	if first == 0 || s.spans[first-1].Network != net {
		return 0, false
	}
	port = s.spans[first-1].Port
	return port, port != 0
}

// Routes lists all routes.
func (s *Snapshot) Routes() []Route { return s.routes }
