package table

import (
	"errors"
	"fmt"
	"slices"
)

var (
	// ErrDamaged: not a snapshot, cut short, or contradicting itself.
	ErrDamaged = errors.New("damaged snapshot")
	// ErrLayout: a snapshot of a layout that this program does not take.
	ErrLayout = errors.New("snapshot of another layout")
)

// Load takes a snapshot from memory, which must not change as long as the snapshot is
// used. Memory that is not aligned to 8 bytes is copied first. Errors are ErrDamaged
// or ErrLayout and say what is wrong.
func Load(b []byte) (*Snapshot, error) {
	if !aligned(b) {
		b = slices.Clone(b)
	}
	s, err := read(b)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{s.checkIndexes, s.checkRecords, s.checkReferences, s.checkSpans} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return s, nil
}

// read checks the frame of the file and finds its sections. Nothing in them has been
// looked at.
func read(b []byte) (*Snapshot, error) {
	if len(b) < len(magic) || [8]byte(b) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrDamaged, magic)
	}
	if len(b) < headerSize {
		return nil, fmt.Errorf("%w: %d bytes, shorter than its header", ErrDamaged, len(b))
	}
	h := headerOf(b)
	if h.Layout != Layout {
		return nil, fmt.Errorf("%w: layout %d, this program takes %d; run agent and fastpath of neighbouring versions", ErrLayout, h.Layout, Layout)
	}
	if h.Size != uint64(len(b)) || h.Size > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes, its header says %d (limit %d)", ErrDamaged, len(b), h.Size, MaxSize)
	}
	if sum := checksum(b); sum != h.CRC {
		return nil, fmt.Errorf("%w: checksum %08x, its header says %08x", ErrDamaged, sum, h.CRC)
	}
	var n counts
	for i := range n {
		n[i] = h.Sections[i].Count
	}
	if sections, size := place(&n); size != h.Size || sections != h.Sections {
		return nil, fmt.Errorf("%w: sections do not add up to its %d bytes", ErrDamaged, h.Size)
	}
	return &Snapshot{header: h, tables: tablesOf(b, &h.Sections)}, nil
}

// tablesOf finds the sections in b, inside which place has put them.
func tablesOf(b []byte, at *[sectionCount]section) tables {
	return tables{
		ports:         view[Port](b, at[sectionPorts]),
		portIndex:     view[uint16](b, at[sectionPortIndex]),
		frontends:     view[Frontend](b, at[sectionFrontends]),
		frontendIndex: view[uint32](b, at[sectionFrontendIndex]),
		frontendIDs:   view[uint32](b, at[sectionFrontendIDs]),
		vips:          view[uint32](b, at[sectionVIPs]),
		backendIDs:    view[uint32](b, at[sectionBackendIDs]),
		ranges:        view[Range](b, at[sectionRanges]),
		backends:      view[Backend](b, at[sectionBackends]),
		backendIndex:  view[uint32](b, at[sectionBackendIndex]),
		addresses:     view[Address](b, at[sectionAddresses]),
		addressIndex:  view[uint32](b, at[sectionAddressIndex]),
		routes:        view[Route](b, at[sectionRoutes]),
		spans:         view[span](b, at[sectionSpans]),
	}
}

// checkIndexes proves that every index finds exactly its records and that every probe
// ends. Each index is proved with the lookup that uses it.
func (s *Snapshot) checkIndexes() error {
	if err := s.checkPortIndex(); err != nil {
		return fmt.Errorf("port index: %w", err)
	}
	err := s.frontendIndex.checkAll(len(s.frontends), func(i int) int {
		f := &s.frontends[i]
		return position(s.frontends, s.Frontend(f.Network, &f.Addr, f.Protocol, f.Port))
	})
	if err != nil {
		return fmt.Errorf("frontend index: %w", err)
	}
	err = s.frontendIDs.checkAll(len(s.frontends), func(i int) int {
		return position(s.frontends, s.FrontendByID(s.frontends[i].ID))
	})
	if err != nil {
		return fmt.Errorf("frontend id index: %w", err)
	}
	if err := s.checkVIPs(); err != nil {
		return fmt.Errorf("VIP index: %w", err)
	}
	err = s.backendIndex.checkAll(len(s.backends), func(i int) int { return s.backend(s.backends[i].ID) })
	if err != nil {
		return fmt.Errorf("backend index: %w", err)
	}
	err = s.addressIndex.checkAll(len(s.addresses), func(i int) int {
		a := &s.addresses[i]
		return position(s.addresses, s.Address(a.Network, &a.Addr))
	})
	if err != nil {
		return fmt.Errorf("address index: %w", err)
	}
	return nil
}

func (s *Snapshot) checkPortIndex() error {
	if want := portEntries(s.ports); len(s.portIndex) != int(want) {
		return fmt.Errorf("%d entries, want %d", len(s.portIndex), want)
	}
	used := 0
	for id, n := range s.portIndex {
		if n == 0 {
			continue
		}
		if int(n) > len(s.ports) || int(s.ports[n-1].ID) != id {
			return fmt.Errorf("entry %d does not name the port with that id", id)
		}
		used++
	}
	if used != len(s.ports) {
		return fmt.Errorf("%d entries for %d ports", used, len(s.ports))
	}
	return nil
}

// checkVIPs proves that each address leads to the first frontend that has it whole, and no
// other.
func (s *Snapshot) checkVIPs() error {
	used, err := s.vips.check(len(s.frontends))
	if err != nil {
		return err
	}
	first := 0
	for i := range s.frontends {
		f := &s.frontends[i]
		if f.Flags&Narrow != 0 {
			continue
		}
		pos := s.vip(f.Network, &f.Addr)
		if pos < 0 || pos > i || s.frontends[pos].Flags&Narrow != 0 {
			return fmt.Errorf("%s in network %d is not found", f.Addr, f.Network)
		}
		if pos == i {
			first++
		}
	}
	if first != used {
		return fmt.Errorf("%d slots used by %d addresses", used, first)
	}
	return nil
}

// checkSpans proves that the spans are those of the routes.
func (s *Snapshot) checkSpans() error {
	spans, err := spansOf(s.routes)
	if err != nil {
		return err
	}
	if !slices.Equal(spans, s.spans) {
		return errors.New("spans are not those of the routes")
	}
	return nil
}
