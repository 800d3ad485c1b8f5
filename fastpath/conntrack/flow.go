package conntrack

import "lace-cni.io/lace/fastpath/packet"

// Tuple identifies one direction of a flow: what a packet of it carries on the
// wire, and the network in which those addresses mean something.
type Tuple struct {
	Src, Dst         packet.Addr
	SrcPort, DstPort uint16 // host order
	Network          packet.NetworkID
	Protocol         uint8
}

// Rewrite is what a packet of a flow carries after translation. The differences
// are one's-complement sums (RFC 1624) of new minus old words, in the form that
// packets hold them in memory: L3 covers the addresses, L4 covers addresses and
// ports, so that an established packet pays one addition per checksum. The table keeps
// L3 and works L4 out from it.
type Rewrite struct {
	Src, Dst         packet.Addr
	SrcPort, DstPort uint16 // host order
	L3, L4           uint16
}

// Mode says who moves the packets of a flow. It is one byte in the slot, so that
// installing into the lane and taking back are one store.
type Mode uint8

const (
	ModeGo   Mode = 0 // every packet is punted to Go
	ModeLane Mode = 1 // the kernel repeats Go's decision
	ModePass Mode = 2 // the kernel leaves packets of this tuple alone
	// ModeOpening is ModeGo but for packets that are too long for the trunk, which the kernel
	// moves as in ModeLane: the client's direction of a TCP connection that opens.
	ModeOpening Mode = 3

	lastMode = ModeOpening
)

// Flags of one direction that never change during its life.
type Flags uint8

const (
	FlagReply   Flags = 1 << iota // this is the backend-to-client direction
	FlagHairpin                   // client and backend are the same address
	FlagSNAT                      // the source was rewritten
	FlagOutside                   // the client is outside the cluster
	FlagStack                     // the node's own stack routes its packets
)

// State bits of one direction, set by Go and by the lane. None is cleared while the flow
// lives, but an RST that later data of the same direction belies; see Touch. The state of
// a TCP flow follows from both directions together; see TCPState.
type State uint16

const (
	StateSeen State = 1 << iota // a packet went this way
	StateSYN                    // a SYN went this way
	StateACK                    // a packet with ACK and without SYN went this way
	StateFIN                    // a FIN went this way
	StateRST                    // an RST went this way
)

// Stamp holds the generations under which a flow was decided. A flow whose stamp
// differs from the tables is looked at again before its next packet goes on.
type Stamp struct{ Frontend, Backend, Target uint16 }

// Flow is one direction of a connection, as a copy out of its slot.
type Flow struct {
	Tuple
	Rewrite  Rewrite
	Frontend uint32 // id
	Backend  uint32 // id
	In       uint16 // id of the port on which its packets come in: the target of the other direction
	Target   uint16 // id of the port through which rewritten packets leave
	Stamp    Stamp
	Flags    Flags
	Mode     Mode
	State    State
	LastSeen uint32 // in ticks, see Tick

	slot        uint32 // where it was copied from; 0: nowhere
	incarnation uint16 // of the slot's content then
}

// TickShift turns nanoseconds of the monotonic clock into ticks of about 67 ms, the
// unit of LastSeen, which BPF computes the same way.
const TickShift = 26

// Tick converts monotonic nanoseconds.
func Tick(ns int64) uint32 { return uint32(uint64(ns) >> TickShift) }
