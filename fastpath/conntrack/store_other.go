//go:build !amd64 || race

package conntrack

import "sync/atomic"

// put64 and put32 store a word of a slot whose sequence is odd. Where stores may overtake
// each other, atomic ones are in order and cheap.
func put64(w *atomic.Uint64, v uint64) { w.Store(v) }
func put32(w *atomic.Uint32, v uint32) { w.Store(v) }
