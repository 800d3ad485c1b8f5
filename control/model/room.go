package model

// Room for records in the tables of a node, of all Services together. The fast path has a map
// of VIPs of fixed size, and ids are meant to be small.
const (
	MaxFrontends = 1 << 17
	MaxBackends  = 1 << 20
)
