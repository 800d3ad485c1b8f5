package packet

// WriteReset writes the TCP reset that answers p into dst and returns its length; 0:
// no answer is due or dst is too small.
func WriteReset(dst []byte, p *Packet) int { return 0 }

// WriteUnreachable writes the ICMP or ICMPv6 port unreachable that answers p into dst
// and returns its length; 0: no answer is due or dst is too small.
func WriteUnreachable(dst []byte, p *Packet) int { return 0 }
