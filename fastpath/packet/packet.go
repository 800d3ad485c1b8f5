package packet

// Protocol numbers (IANA) that Lace knows.
const (
	ProtocolICMP   uint8 = 1
	ProtocolTCP    uint8 = 6
	ProtocolUDP    uint8 = 17
	ProtocolICMPv6 uint8 = 58
	ProtocolSCTP   uint8 = 132
)

// TCP flag bits (RFC 9293, section 3.1), as in the header's 14th byte.
const (
	FlagFIN uint8 = 1 << iota
	FlagSYN
	FlagRST
	FlagPSH
	FlagACK
	FlagURG
)

// Outcome says how far a frame could be parsed.
type Outcome uint8

const (
	OK        Outcome = iota // IP with ports known: TCP, UDP or SCTP, whole or first fragment
	NoPorts                  // IP, but no ports: ICMP, later fragment, other protocol
	NotIP                    // ARP and every other ether type
	Truncated                // ends inside a header
	Invalid                  // headers contradict each other or the frame
)

// Packet is one parsed frame: offsets and decoded fields over the frame's own
// bytes. It is filled in place by Parse and reused; nothing is allocated.
// One goroutine owns a Packet and its frame.
type Packet struct {
	Frame []byte // the whole frame; Src, Dst and offsets refer to it
	Src   Addr
	Dst   Addr

	L3  int // offset of the IP header: 14, or 18 behind one VLAN tag
	L4  int // offset of the transport header; 0 for a later fragment
	End int // end of the IP packet by its own length field; frame padding lies behind it

	SrcPort uint16 // host order; 0 unless the outcome is OK
	DstPort uint16

	Family   uint8 // 4 or 6
	Protocol uint8 // transport protocol, behind IPv6 extension headers
	TTL      uint8 // time to live or hop limit
	Flags    uint8 // TCP flags, else 0

	Tagged bool   // one 802.1Q tag
	VLAN   uint16 // VLAN id when Tagged

	Options  bool   // IPv4 options or IPv6 extension headers present
	Fragment bool   // part of a fragmented packet
	Offset   uint16 // fragment offset in bytes
	More     bool   // more fragments follow
	Cut      bool   // the frame holds the packet's beginning only, up to End; see ParseCut
	ID       uint32 // IPv4 or IPv6 fragment identification

	ICMPType uint8
	ICMPCode uint8
}
