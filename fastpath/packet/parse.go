package packet

// EthernetLen is the length of an Ethernet header without tag.
const EthernetLen = 14

// MaxAnswer is the longest frame that WriteReset and WriteUnreachable write: a tagged
// Ethernet header and an ICMPv6 error of 1,280 bytes (RFC 4443, section 2.4 c).
const MaxAnswer = EthernetLen + 4 + 1280

// Parse fills p from frame.
func (p *Packet) Parse(frame []byte) Outcome { return Invalid }
