package table

import (
	"hash/crc32"
)

// Layout is the version of the file layout that this package writes and reads.
const Layout = 2

// MaxSize bounds a snapshot file. 10,000 services with 10 endpoints each take 6 MB.
const MaxSize = 1 << 30

var magic = [8]byte{'L', 'A', 'C', 'E', 'S', 'N', 'A', 'P'}

// Sections of the file, in file order.
const (
	sectionPorts         = iota
	sectionPortIndex     // position+1 by port id up to the largest, 0 is none
	sectionFrontends     //
	sectionFrontendIndex // index by network, address, protocol and port
	sectionFrontendIDs   // index by id
	sectionVIPs          // index by network and address, of the first frontend that has it whole
	sectionBackendIDs    //
	sectionRanges        //
	sectionBackends      //
	sectionBackendIndex  // index by id
	sectionAddresses     //
	sectionAddressIndex  // index by network and address
	sectionRoutes        //
	sectionSpans         // routes as disjoint spans, sorted

	sectionCount
)

// sectionAlign starts every section on a cache line of its own.
const sectionAlign = 64

// section says where the records of a section lie.
type section struct{ Offset, Count uint32 }

// header opens the file. The checksum is CRC32C over the whole file without its own
// four bytes.
type header struct {
	Magic      [8]byte
	Layout     uint32
	CRC        uint32
	Size       uint64
	Generation uint64
	Created    int64
	Keys       keys
	Sections   [sectionCount]section
	Settings   Settings
}

const (
	crcOffset = 12
	crcEnd    = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:crcOffset], castagnoli), castagnoli, b[crcEnd:])
}

// counts are the records per section.
type counts [sectionCount]uint32

// place lays the sections out one behind the other. The layout of a file follows from
// its counts alone, so that a reader need only compare. The size may exceed MaxSize;
// offsets mean something only when it does not.
func place(n *counts) (sections [sectionCount]section, size uint64) {
	at := alignUp(uint64(headerSize))
	for i := range sections {
		sections[i] = section{Offset: uint32(at), Count: n[i]}
		at = alignUp(at + uint64(n[i])*recordSizes[i])
	}
	return sections, at
}

func alignUp(n uint64) uint64 { return (n + sectionAlign - 1) &^ (sectionAlign - 1) }
