//go:build !amd64

package xdp

// A load may overtake another on this processor: the programs read a slot's sequence by an
// operation that does not let them.
const weakOrder = 1
