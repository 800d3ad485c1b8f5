package packet

import "fmt"

// ProtocolName is the name of an IP protocol that flows or their errors have, and
// "protocol N" of any other. It allocates only for the latter.
func ProtocolName(p uint8) string {
	switch p {
	case ProtocolTCP:
		return "TCP"
	case ProtocolUDP:
		return "UDP"
	case ProtocolSCTP:
		return "SCTP"
	case ProtocolICMP:
		return "ICMP"
	case ProtocolICMPv6:
		return "ICMPv6"
	}
	return fmt.Sprintf("protocol %d", p)
}
