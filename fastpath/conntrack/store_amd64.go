//go:build amd64 && !race

package conntrack

import (
	"sync/atomic"
	"unsafe"
)

// put64 and put32 store a word of a slot whose sequence is odd. An atomic store is a locked
// instruction here, which waits for all stores before it: some thirty of them make up a
// third of what a new flow costs. This processor lets no store overtake another, and the
// atomic stores of the sequence before and after keep the compiler from moving these.
func put64(w *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(w)) = v }
func put32(w *atomic.Uint32, v uint32) { *(*uint32)(unsafe.Pointer(w)) = v }
