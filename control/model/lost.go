package model

import "net/netip"

// Place is an address and port that a Service asks for.
type Place struct {
	Service  Name
	Network  NetworkID
	Addr     netip.Addr
	Port     uint16
	Protocol Protocol
}

// Lost says of each place that its Service does not have who has it: a Service, by its name,
// or in words what else.
type Lost map[Place]string
