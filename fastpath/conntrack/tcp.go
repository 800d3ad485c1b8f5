package conntrack

import "lace-cni.io/lace/fastpath/packet"

// TCP is the state of a connection as both directions' bits show it.
type TCP uint8

const (
	HalfOpen    TCP = iota // the client has not answered the server's SYN
	Established            // both have
	Closing                // one side has sent its FIN
	Closed                 // both have, or one has reset the connection
)

func (s TCP) String() string {
	if s > Closed {
		return "unknown"
	}
	return [...]string{"half-open", "established", "closing", "closed"}[s]
}

// TCPState derives the state from the bits of the client's and the server's direction.
// Packets may have been met in any order, and some only by the lane.
func TCPState(fwd, rev State) TCP {
	fins := fwd & rev & StateFIN
	switch {
	case (fwd|rev)&StateRST != 0 || fins != 0:
		return Closed
	case !opened(fwd, rev):
		return HalfOpen
	case (fwd|rev)&StateFIN != 0:
		return Closing
	}
	return Established
}

// opened reports whether the connection has ever been established. Unlike the state it
// never turns back: the bits concerned are never cleared.
func opened(fwd, rev State) bool {
	return fwd&StateACK != 0 && rev&(StateSYN|StateACK) != 0
}

// StateOf is what a packet with these TCP flags (packet.FlagSYN and so on; 0 for other
// protocols) adds to the state of its direction. An RST says nothing but that.
func StateOf(flags uint8) State {
	s := StateSeen
	switch {
	case flags&packet.FlagRST != 0:
		return s | StateRST
	case flags&packet.FlagSYN != 0:
		s |= StateSYN
	case flags&packet.FlagACK != 0:
		s |= StateACK
	}
	if flags&packet.FlagFIN != 0 {
		s |= StateFIN
	}
	return s
}
