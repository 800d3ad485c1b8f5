package packet

// The Ethernet source address of a frame on the trunk (the hop between lace0 and
// lace1) says what the frame is. The destination is lace0's real address, or, of a packet
// that was met on its way out of a port, that of its next hop, which Go leaves as it is.
//
//	kernel to Go: 02:4c:50:WHY:PORT_HI:PORT_LO
//	Go to kernel: 02:4c:49:HOW:PORT_HI:PORT_LO
//
// xdp/bpf/trunk.h holds the same in C.
const (
	trunk0      = 0x02
	trunk1      = 0x4c
	trunkPunt   = 0x50
	trunkInject = 0x49
	trunkEgress = 0x80 // in WHY
	trunkCut    = 0x40 // in WHY
)

// Why a claim program punted a packet; informative.
const (
	PuntFlow uint8 = 0 // the packet's tuple is in the flow table
	PuntVIP  uint8 = 1 // the destination is a VIP
)

// Punt is what the kernel side says about a frame that it handed over.
type Punt struct {
	Port   uint16 // id of the port on which the packet was met
	Why    uint8  // PuntFlow, PuntVIP; 0 to 63
	Egress bool   // met on its way out of that port rather than in
	Cut    bool   // it is longer than the trunk takes, and the frame holds its beginning
}

// Inject is what the kernel side is to do with a frame.
type Inject uint8

const (
	Direct Inject = 0 // deliver out of the port; host: up the node's stack
	Stack  Inject = 1 // give to the node's stack as if it had come in on the port
	Resume Inject = 2 // let it go on out of the port, to the next hop that the stack has found
)

// WritePunt marks frame as punted. It is false, and nothing written, when frame is
// shorter than an Ethernet header.
func WritePunt(frame []byte, punt Punt) bool {
	why := punt.Why &^ (trunkEgress | trunkCut)
	if punt.Egress {
		why |= trunkEgress
	}
	if punt.Cut {
		why |= trunkCut
	}
	return writeTrunk(frame, trunkPunt, why, punt.Port)
}

// ReadPunt reads what WritePunt or a claim program wrote; false: not a punted frame.
func ReadPunt(frame []byte) (Punt, bool) {
	why, port, ok := readTrunk(frame, trunkPunt)
	return Punt{Port: port, Why: why &^ (trunkEgress | trunkCut), Egress: why&trunkEgress != 0, Cut: why&trunkCut != 0}, ok
}

// WriteInject marks frame for the kernel side. It is false, and nothing written, when
// frame is shorter than an Ethernet header.
func WriteInject(frame []byte, how Inject, port uint16) bool {
	return writeTrunk(frame, trunkInject, uint8(how), port)
}

// ReadInject reads what WriteInject wrote; false: not a frame for the kernel side.
func ReadInject(frame []byte) (how Inject, port uint16, ok bool) {
	h, port, ok := readTrunk(frame, trunkInject)
	return Inject(h), port, ok
}

func writeTrunk(frame []byte, kind, what uint8, port uint16) bool {
	if len(frame) < EthernetLen {
		return false
	}
	b := frame[6:12:12]
	b[0], b[1], b[2], b[3], b[4], b[5] = trunk0, trunk1, kind, what, uint8(port>>8), uint8(port)
	return true
}

func readTrunk(frame []byte, kind uint8) (what uint8, port uint16, ok bool) {
	if len(frame) < EthernetLen {
		return 0, 0, false
	}
	b := frame[6:12:12]
	if b[0] != trunk0 || b[1] != trunk1 || b[2] != kind {
		return 0, 0, false
	}
	return b[3], uint16(b[4])<<8 | uint16(b[5]), true
}
