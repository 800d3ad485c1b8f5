package table

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/packet"
)

// Seal makes the frame of a file right again after its contents were changed: magic,
// layout, size, section offsets and checksum. What is left wrong is what an attacker
// with the right to write could leave wrong.
func Seal(b []byte) bool {
	if len(b) < headerSize || !aligned(b) {
		return false
	}
	h := headerOf(b)
	h.Magic, h.Layout, h.Size = magic, Layout, uint64(len(b))
	var n counts
	for i := range n {
		n[i] = h.Sections[i].Count
	}
	h.Sections, _ = place(&n)
	h.CRC = checksum(b)
	return true
}

// Aligned reports whether records may be read where they lie in b.
func Aligned(b []byte) bool { return aligned(b) }

// Offsets of what the tests damage on purpose.
const (
	OffsetLayout = 8
	OffsetCRC    = crcOffset
	OffsetSize   = 16
)

// SectionOffset is where section i of a file lies.
func SectionOffset(b []byte, i int) int { return int(headerOf(b).Sections[i].Offset) }

// SetCount changes the record count of section i.
func SetCount(b []byte, i int, n uint32) { headerOf(b).Sections[i].Count = n }

// Put32 writes a little-endian word.
func Put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }

// Sections by name.
const (
	SectionPortIndex     = sectionPortIndex
	SectionFrontends     = sectionFrontends
	SectionFrontendIndex = sectionFrontendIndex
	SectionFrontendIDs   = sectionFrontendIDs
	SectionVIPs          = sectionVIPs
	SectionBackendIDs    = sectionBackendIDs
	SectionRanges        = sectionRanges
	SectionBackends      = sectionBackends
	SectionBackendIndex  = sectionBackendIndex
	SectionAddresses     = sectionAddresses
	SectionAddressIndex  = sectionAddressIndex
	SectionRoutes        = sectionRoutes
	SectionSpans         = sectionSpans
)

// FrontendProbes counts the slots that Frontend looks at.
func FrontendProbes(s *Snapshot, addr *packet.Addr, proto uint8, port uint16) int {
	x, n := s.frontendIndex, 1
	for i := x.start(s.header.Keys.addr(0, addr, service(proto, port))); x[i] != 0; i = x.next(i) {
		if f := &s.frontends[x[i]-1]; f.Port == port && f.Protocol == proto && f.Addr == *addr {
			break
		}
		n++
	}
	return n
}
