package table

import (
	"fmt"
	"slices"

	"lace-cni.io/lace/fastpath/packet"
)

// minMTU is the smallest that IPv4 allows (RFC 791).
const minMTU = 68

// checkRecords holds every record to its ranges; routes are left to spansOf. It needs no
// index.
func (s *Snapshot) checkRecords() error {
	if err := s.header.Settings.check(); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	for i := range s.ports {
		if err := s.ports[i].check(); err != nil {
			return fmt.Errorf("%v: %w", &s.ports[i], err)
		}
	}
	for i := range s.frontends {
		if err := s.frontends[i].check(); err != nil {
			return fmt.Errorf("%v: %w", &s.frontends[i], err)
		}
	}
	for i := range s.backends {
		if err := s.backends[i].check(); err != nil {
			return fmt.Errorf("%v: %w", &s.backends[i], err)
		}
	}
	for i := range s.addresses {
		if err := checkNetwork(s.addresses[i].Network); err != nil {
			return fmt.Errorf("%v: %w", &s.addresses[i], err)
		}
	}
	return nil
}

// checkReferences follows every id from one record to another. It needs the indexes.
func (s *Snapshot) checkReferences() error {
	for i := range s.addresses {
		if a := &s.addresses[i]; s.Port(a.Port) == nil {
			return fmt.Errorf("%v: port %d is not among the ports", a, a.Port)
		}
	}
	for i := range s.routes {
		if r := &s.routes[i]; s.Port(r.Port) == nil {
			return fmt.Errorf("%v: port %d is not among the ports", r, r.Port)
		}
	}
	if err := s.checkSets(); err != nil {
		return err
	}
	if err := s.checkAliases(); err != nil {
		return err
	}
	return s.checkSources()
}

// checkSets proves that every set lies in the list of backend ids and holds only
// backends that its frontend can translate to: of its own family and protocol. Sets may
// share runs, so the list is walked once and each set is then settled by its ends.
func (s *Snapshot) checkSets() error {
	edges, err := s.edges()
	if err != nil {
		return err
	}
	for i := range s.frontends {
		f := &s.frontends[i]
		if err := s.checkSet(f, &f.Inside, edges); err != nil {
			return fmt.Errorf("%v: set inside: %w", f, err)
		}
		if err := s.checkSet(f, &f.Outside, edges); err != nil {
			return fmt.Errorf("%v: set outside: %w", f, err)
		}
		if err := s.checkRun(f, f.Keep, edges); err != nil {
			return fmt.Errorf("%v: backends that keep flows: %w", f, err)
		}
	}
	return nil
}

// edges are the entries of the list of backend ids, in order, whose backends are of another
// family or protocol than those before them. Few Services next to each other differ.
func (s *Snapshot) edges() (edges []uint32, err error) {
	at := 0
	var before *Backend
	for i, id := range s.backendIDs {
		if at = s.backendFrom(id, at); at < 0 {
			return nil, fmt.Errorf("backend id %d at position %d of the sets is not among the backends", id, i)
		}
		b := &s.backends[at]
		if before != nil && (b.Protocol != before.Protocol || b.Addr.Is4() != before.Addr.Is4()) {
			edges = append(edges, uint32(i))
		}
		before = b
	}
	return edges, nil
}

// backendFrom is backend, for one who has just met the backend at a position: where ids lie
// in their order, as compilers write them, the look at another one's distance finds it
// without the index, whose slots are all over the memory.
func (s *Snapshot) backendFrom(id uint32, at int) int {
	if at < len(s.backends) {
		near := at + int(id) - int(s.backends[at].ID)
		if near >= 0 && near < len(s.backends) && s.backends[near].ID == id {
			return near
		}
	}
	return s.backend(id)
}

func (s *Snapshot) checkSet(f *Frontend, set *Set, edges []uint32) error {
	if set.Empty > Drop {
		return fmt.Errorf("what to do when empty is %d, want 0 (refuse) or 1 (drop)", set.Empty)
	}
	return s.checkRun(f, Run{set.First, set.Count}, edges)
}

func (s *Snapshot) checkRun(f *Frontend, set Run, edges []uint32) error {
	end := uint64(set.First) + uint64(set.Count)
	if end > uint64(len(s.backendIDs)) {
		return fmt.Errorf("%d backends from position %d on run past the list of %d", set.Count, set.First, len(s.backendIDs))
	}
	if set.Count == 0 {
		return nil
	}
	b := s.Backend(s.backendIDs[set.First])
	if b.Protocol != f.Protocol || b.Addr.Is4() != f.Addr.Is4() {
		return fmt.Errorf("%v has another family or protocol", b)
	}
	next, _ := slices.BinarySearch(edges, set.First+1)
	if next < len(edges) && uint64(edges[next]) < end {
		return fmt.Errorf("%v has another family or protocol", s.Backend(s.backendIDs[edges[next]]))
	}
	return nil
}

func (p *Port) check() error {
	if p.ID == 0 || p.ID >= MaxPorts {
		return fmt.Errorf("id %d is outside 1 to %d", p.ID, MaxPorts-1)
	}
	switch p.Kind {
	case PortHost, PortPod, PortUplink:
	default:
		return fmt.Errorf("kind %d is none of host, pod, uplink", p.Kind)
	}
	if (p.Kind == PortHost) != (p.ID == HostPort) {
		return fmt.Errorf("id %d with kind %d: the node itself, and nothing else, is port %d", p.ID, p.Kind, HostPort)
	}
	if p.MTU < minMTU && p.Kind != PortHost {
		return fmt.Errorf("MTU %d is below %d", p.MTU, minMTU)
	}
	if err := checkNetwork(p.Network); err != nil {
		return err
	}
	return p.checkDevice()
}

func (f *Frontend) check() error {
	switch {
	case f.Flags&^allFlags != 0:
		return fmt.Errorf("flags are %#x, of which %#x is not known", f.Flags, f.Flags&^allFlags)
	case f.Flags&Restricted == 0 && f.Sources.Count > 0:
		return fmt.Errorf("%d source ranges for a frontend that is not restricted", f.Sources.Count)
	case f.Affinity > MaxAffinity:
		return fmt.Errorf("affinity is %d s, want at most %d", f.Affinity, MaxAffinity)
	case f.Affinity > 0 && f.Session == 0:
		return fmt.Errorf("affinity of %d s without a session", f.Affinity)
	}
	return checkService(f.ID, f.Network, f.Protocol, f.Port)
}

func (b *Backend) check() error {
	if b.Serving > 1 {
		return fmt.Errorf("serving is %d, want 0 or 1", b.Serving)
	}
	return checkService(b.ID, b.Network, b.Protocol, b.Port)
}

func (r *Route) check() error {
	if r.Bits > 128 || r.Prefix.Is4() && r.Bits < mappedBits {
		return fmt.Errorf("prefix length %d is outside the address (IPv4 prefixes are v4-mapped: 96 to 128)", r.Bits)
	}
	for i := int(r.Bits); i < 128; i++ {
		if r.Prefix[i/8]&(0x80>>(i%8)) != 0 {
			return fmt.Errorf("bits behind the prefix length are set")
		}
	}
	return checkNetwork(r.Network)
}

func checkService(id uint32, net packet.NetworkID, proto uint8, port uint16) error {
	if id == 0 {
		return fmt.Errorf("id is 0, which means none")
	}
	if port == 0 {
		return fmt.Errorf("port is 0")
	}
	switch proto {
	case packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP:
	default:
		return fmt.Errorf("protocol %d is none of TCP, UDP, SCTP", proto)
	}
	return checkNetwork(net)
}

func checkNetwork(net packet.NetworkID) error {
	if net > packet.MaxNetworkID {
		return fmt.Errorf("network %d is above %d", net, packet.MaxNetworkID)
	}
	return nil
}

func (s *Settings) check() error {
	if s.Lane > 1 {
		return fmt.Errorf("lane is %d, want 0 or 1", s.Lane)
	}
	if s.HalfOpenMax == 0 {
		return fmt.Errorf("half-open maximum is 0, so that no connection could begin")
	}
	if s.SourcePortFirst == 0 || s.SourcePortFirst > s.SourcePortLast {
		return fmt.Errorf("source ports %d to %d are no range", s.SourcePortFirst, s.SourcePortLast)
	}
	if a := s.NodeAddr4; a != (packet.Addr{}) && !a.Is4() {
		return fmt.Errorf("node's IPv4 address %s is not one", a)
	}
	if a := s.NodeAddr6; a.Is4() {
		return fmt.Errorf("node's IPv6 address %s is not one", a)
	}
	return s.Timeouts.check()
}

func (t *Timeouts) check() error {
	for _, one := range []struct {
		name string
		ns   int64
	}{
		{"half-open TCP", t.TCPHalfOpen},
		{"established TCP", t.TCPEstablished},
		{"closing TCP", t.TCPClosing},
		{"closed TCP", t.TCPClosed},
		{"new UDP", t.UDPNew},
		{"UDP", t.UDP},
		{"SCTP", t.SCTP},
	} {
		if one.ns <= 0 {
			return fmt.Errorf("timeout of %s is %d ns, want more than 0 (DefaultSettings has usual values)", one.name, one.ns)
		}
	}
	return nil
}
