//go:build !(armbe || arm64be || m68k || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || shbe || sparc || sparc64)

package table

import "unsafe"

// All unsafe code of the package is in this file: records are read where they lie.
// That needs a little-endian machine, hence the build constraint, and alignment, which
// aligned answers for and every section offset keeps (see place).

// recordSizes are the bytes per record of each section.
var recordSizes = [sectionCount]uint64{
	sectionPorts:         uint64(unsafe.Sizeof(Port{})),
	sectionPortIndex:     uint64(unsafe.Sizeof(uint16(0))),
	sectionFrontends:     uint64(unsafe.Sizeof(Frontend{})),
	sectionFrontendIndex: uint64(unsafe.Sizeof(uint32(0))),
	sectionFrontendIDs:   uint64(unsafe.Sizeof(uint32(0))),
	sectionVIPs:          uint64(unsafe.Sizeof(uint32(0))),
	sectionBackendIDs:    uint64(unsafe.Sizeof(uint32(0))),
	sectionRanges:        uint64(unsafe.Sizeof(Range{})),
	sectionBackends:      uint64(unsafe.Sizeof(Backend{})),
	sectionBackendIndex:  uint64(unsafe.Sizeof(uint32(0))),
	sectionAddresses:     uint64(unsafe.Sizeof(Address{})),
	sectionAddressIndex:  uint64(unsafe.Sizeof(uint32(0))),
	sectionRoutes:        uint64(unsafe.Sizeof(Route{})),
	sectionSpans:         uint64(unsafe.Sizeof(span{})),
}

const headerSize = int(unsafe.Sizeof(header{}))

// headerOf is the header at the start of b, which is aligned and long enough.
func headerOf(b []byte) *header {
	_ = b[headerSize-1]
	return (*header)(unsafe.Pointer(unsafe.SliceData(b)))
}

// view is the section of b that at describes, as records. The slice expression holds
// it inside b.
func view[T any](b []byte, at section) []T {
	if at.Count == 0 {
		return nil
	}
	var record T
	end := uint64(at.Offset) + uint64(at.Count)*uint64(unsafe.Sizeof(record))
	part := b[at.Offset:end]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(part))), int(at.Count))
}

// aligned reports whether the widest field of a record may be read where it lies in b.
func aligned(b []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Alignof(uint64(0)) == 0
}

// position is the index of record p of records, -1 when p is nil.
func position[T any](records []T, p *T) int {
	if p == nil {
		return -1
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(records)))
	return int((uintptr(unsafe.Pointer(p)) - from) / unsafe.Sizeof(*p))
}
