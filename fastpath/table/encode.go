package table

import (
	"fmt"
)

// Encode writes contents as a snapshot file into dst, from its start, and returns the
// slice of the file; dst is used again when its capacity is enough. Contents that no
// reader would take are an error that names the record, and dst is then scrap.
// 10,000 frontends with 10 backends each take a few milliseconds.
func Encode(dst []byte, c *Contents) ([]byte, error) {
	s, b, err := lay(dst, c)
	if err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	for _, step := range []func() error{s.checkRecords, s.buildIndexes, s.checkReferences} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("encode snapshot: %w", err)
		}
	}
	s.header.CRC = checksum(b)
	return b, nil
}

// lay writes header and records; the indexes are still empty.
func lay(dst []byte, c *Contents) (*Snapshot, []byte, error) {
	spans, err := spansOf(c.Routes)
	if err != nil {
		return nil, nil, err
	}
	n, err := count(c, len(spans))
	if err != nil {
		return nil, nil, err
	}
	sections, size := place(&n)
	if size > MaxSize {
		return nil, nil, fmt.Errorf("%d bytes exceed the limit of %d", size, MaxSize)
	}
	b := buffer(dst, int(size))
	h := headerOf(b)
	*h = header{
		Magic: magic, Layout: Layout, Size: size, Generation: c.Generation, Created: c.Created,
		Keys: newKeys(), Sections: sections, Settings: c.Settings,
	}
	s := &Snapshot{header: h, tables: tablesOf(b, &sections)}
	copy(s.ports, c.Ports)
	copy(s.frontends, c.Frontends)
	copy(s.backendIDs, c.BackendIDs)
	copy(s.ranges, c.Ranges)
	copy(s.backends, c.Backends)
	copy(s.addresses, c.Addresses)
	copy(s.routes, c.Routes)
	copy(s.spans, spans)
	return s, b, nil
}

// count says how many records each section gets.
func count(c *Contents, spans int) (n counts, err error) {
	for _, l := range []int{len(c.Ports), len(c.Frontends), len(c.BackendIDs), len(c.Ranges), len(c.Backends), len(c.Addresses), len(c.Routes)} {
		if l > MaxSize {
			return n, fmt.Errorf("%d records of one kind exceed the limit of %d bytes a file", l, MaxSize)
		}
	}
	return counts{
		sectionPorts:         uint32(len(c.Ports)),
		sectionPortIndex:     portEntries(c.Ports),
		sectionFrontends:     uint32(len(c.Frontends)),
		sectionFrontendIndex: slotsFor(len(c.Frontends)),
		sectionFrontendIDs:   slotsFor(len(c.Frontends)),
		sectionVIPs:          slotsFor(len(c.Frontends)),
		sectionBackendIDs:    uint32(len(c.BackendIDs)),
		sectionRanges:        uint32(len(c.Ranges)),
		sectionBackends:      uint32(len(c.Backends)),
		sectionBackendIndex:  slotsFor(len(c.Backends)),
		sectionAddresses:     uint32(len(c.Addresses)),
		sectionAddressIndex:  slotsFor(len(c.Addresses)),
		sectionRoutes:        uint32(len(c.Routes)),
		sectionSpans:         uint32(spans),
	}, nil
}

// portEntries is the length of the index of ports: up to the largest id.
func portEntries(ports []Port) (n uint32) {
	for i := range ports {
		n = max(n, uint32(ports[i].ID)+1)
	}
	return n
}

// buffer is dst cut or replaced to size bytes, all zero and aligned.
func buffer(dst []byte, size int) []byte {
	if cap(dst) < size || !aligned(dst[:1]) {
		return make([]byte, size, size+size/8)
	}
	dst = dst[:size]
	clear(dst)
	return dst
}

// buildIndexes fills the indexes and finds what is there twice on the way.
func (s *Snapshot) buildIndexes() error {
	if err := s.buildPortIndex(); err != nil {
		return err
	}
	if err := s.buildFrontendIndexes(); err != nil {
		return err
	}
	k := &s.header.Keys
	for i := range s.backends {
		b := &s.backends[i]
		if j := s.backendIndex.add(k.id(b.ID), i, func(j int) bool { return s.backends[j].ID == b.ID }); j != i {
			return fmt.Errorf("%v: id is also that of %v", b, &s.backends[j])
		}
	}
	for i := range s.addresses {
		a := &s.addresses[i]
		same := func(j int) bool { return s.addresses[j].Network == a.Network && s.addresses[j].Addr == a.Addr }
		if j := s.addressIndex.add(k.addr(a.Network, &a.Addr, 0), i, same); j != i {
			return fmt.Errorf("%v is there twice, behind port %d and port %d", a, s.addresses[j].Port, a.Port)
		}
	}
	return nil
}

func (s *Snapshot) buildPortIndex() error {
	for i := range s.ports {
		p := &s.ports[i]
		if other := s.Port(p.ID); other != nil {
			return fmt.Errorf("%v: id is also that of %v", p, other)
		}
		s.portIndex[p.ID] = uint16(i) + 1
	}
	return nil
}

func (s *Snapshot) buildFrontendIndexes() error {
	k := &s.header.Keys
	for i := range s.frontends {
		f := &s.frontends[i]
		sameVIP := func(j int) bool { return s.frontends[j].Network == f.Network && s.frontends[j].Addr == f.Addr }
		sameKey := func(j int) bool {
			return sameVIP(j) && s.frontends[j].Port == f.Port && s.frontends[j].Protocol == f.Protocol
		}
		sameID := func(j int) bool { return s.frontends[j].ID == f.ID }
		if j := s.frontendIndex.add(k.addr(f.Network, &f.Addr, service(f.Protocol, f.Port)), i, sameKey); j != i {
			return fmt.Errorf("%v is there twice, the other is %v", f, &s.frontends[j])
		}
		if j := s.frontendIDs.add(k.id(f.ID), i, sameID); j != i {
			return fmt.Errorf("%v: id is also that of %v", f, &s.frontends[j])
		}
		if f.Flags&Narrow == 0 {
			s.vips.add(k.addr(f.Network, &f.Addr, 0), i, sameVIP)
		}
	}
	return nil
}
