package conntrack

import (
	"fmt"
	"unsafe"
)

// The slot and the header are exactly SlotSize long, the record TagSize; a change that
// breaks the layout does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(slot{})-SlotSize]
	_ = [1]struct{}{}[unsafe.Sizeof(header{})-SlotSize]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.high)-64]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.peer)-112]
	_ = [1]struct{}{}[unsafe.Sizeof(record{})-TagSize]
)

// tableOf views memory as slots and records, as many as a table can use of it.
func tableOf(mem, tags []byte) ([]slot, []record, error) {
	slots, err := slotsOf(mem)
	if err != nil {
		return nil, nil, err
	}
	records, err := recordsOf(tags, BucketsIn(len(slots)))
	return slots, records, err
}

// recordsOf views memory as n records.
func recordsOf(tags []byte, n int) ([]record, error) {
	if len(tags) < n*TagSize {
		return nil, fmt.Errorf("flow table tags have %d bytes, need %d for %d buckets: make the map of tags larger", len(tags), n*TagSize, n)
	}
	if uintptr(unsafe.Pointer(&tags[0]))%8 != 0 {
		return nil, fmt.Errorf("flow table tags at %p are not aligned to 8 bytes: map them at a page boundary", &tags[0])
	}
	return unsafe.Slice((*record)(unsafe.Pointer(&tags[0])), n), nil
}

// slotsOf views memory as slots, as many as a table can use of it.
func slotsOf(mem []byte) ([]slot, error) {
	n := fitting(len(mem) / SlotSize)
	if n == 0 {
		return nil, fmt.Errorf("flow table memory has %d bytes, need at least %d: make the map larger", len(mem), (1+BucketSlots)*SlotSize)
	}
	if uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, fmt.Errorf("flow table memory at %p is not aligned to 8 bytes: map it at a page boundary", &mem[0])
	}
	return unsafe.Slice((*slot)(unsafe.Pointer(&mem[0])), n), nil
}

func (r *Reader) header() *header { return (*header)(unsafe.Pointer(&r.slots[0])) }
