package xdp

// Loads stay in order on this processor, so that the programs need no barrier between the
// words of a slot.
const weakOrder = 0
