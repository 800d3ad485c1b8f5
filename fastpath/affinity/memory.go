package affinity

import (
	"fmt"
	"unsafe"
)

// BucketSize is the size of a bucket of eight records, and of the head in front of them.
const BucketSize = bucketRecords * int(unsafe.Sizeof(record{}))

// bucketRecords is how many clients a bucket has room for.
const bucketRecords = 8

type bucket [bucketRecords]record

// head opens the memory.
type head struct {
	Magic   [8]byte
	Layout  uint32
	Buckets uint32
	Secret  [4]uint64
}

var (
	_ = [1]struct{}{}[unsafe.Sizeof(record{})-40]
	_ = [1]struct{}{}[unsafe.Sizeof(bucket{})-uintptr(BucketSize)]
)

// view is the memory as head and buckets. All unsafe code of the package is here.
func view(mem []byte) (*head, []bucket, error) {
	n := len(mem)/BucketSize - 1
	if n < 1 {
		return nil, nil, fmt.Errorf("affinity records: %d bytes of memory, need at least %d", len(mem), 2*BucketSize)
	}
	if uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, nil, fmt.Errorf("affinity records at %p are not aligned to 8 bytes: map them at a page boundary", &mem[0])
	}
	h := (*head)(unsafe.Pointer(&mem[0]))
	return h, unsafe.Slice((*bucket)(unsafe.Pointer(&mem[BucketSize])), n), nil
}

// bytesOf is the words as bytes, aligned as words are.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}
