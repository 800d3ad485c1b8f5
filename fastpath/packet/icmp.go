package packet

// Types of ICMP (RFC 792) and ICMPv6 (RFC 4443) messages that Lace tells apart.
const (
	icmpQuench    = 4 // deprecated, RFC 6633
	icmpRedirect  = 5
	icmpEcho      = 8
	icmpEchoReply = 0
	icmpExceeded  = 11
	icmpParameter = 12

	icmpv6TooBig    = 2
	icmpv6Exceeded  = 3
	icmpv6Parameter = 4
	icmpv6Echo      = 128
	icmpv6EchoReply = 129
)

// IsICMP reports whether p is a message of its family's ICMP. Its type and code are only
// known when Parse said NoPorts and p is no later fragment.
func (p *Packet) IsICMP() bool {
	if p.Family == 4 {
		return p.Protocol == ProtocolICMP
	}
	return p.Family == 6 && p.Protocol == ProtocolICMPv6
}

// IsEcho reports whether p is a ping or the answer to one.
func (p *Packet) IsEcho() bool {
	if !p.IsICMP() || p.L4 == 0 {
		return false
	}
	if p.Family == 4 {
		return p.ICMPType == icmpEcho || p.ICMPType == icmpEchoReply
	}
	return p.ICMPType == icmpv6Echo || p.ICMPType == icmpv6EchoReply
}

// IsError reports whether p is an ICMP error, which quotes the packet that it is about:
// every type that RFC 792 and RFC 4443 name.
func (p *Packet) IsError() bool {
	if !p.IsICMP() || p.L4 == 0 {
		return false
	}
	if p.Family == 6 {
		return p.ICMPType >= icmpv6Unreachable && p.ICMPType <= icmpv6Parameter
	}
	switch p.ICMPType {
	case icmpUnreachable, icmpExceeded, icmpParameter:
		return true
	}
	return p.IsAdvice()
}

// IsAdvice reports whether p is an error that says nothing of the packet's fate but where
// its sender should send the next, or how fast: a redirect, or the source quench that RFC
// 6633 abolished.
func (p *Packet) IsAdvice() bool {
	return p.Family == 4 && p.Protocol == ProtocolICMP && p.L4 != 0 &&
		(p.ICMPType == icmpQuench || p.ICMPType == icmpRedirect)
}

// quoted is where the quoted packet ends: where the message does, or where its length
// field says that extensions begin (RFC 4884, section 4). Only the types that may be
// extended have the field.
func (p *Packet) quoted() int {
	at := p.L4 + ICMPLen
	length := 0
	switch {
	case p.Family == 4 && (p.ICMPType == icmpUnreachable || p.ICMPType == icmpExceeded || p.ICMPType == icmpParameter):
		length = 4 * int(p.Frame[p.L4+5])
	case p.Family == 6 && (p.ICMPType == icmpv6Unreachable || p.ICMPType == icmpv6Exceeded):
		length = 8 * int(p.Frame[p.L4+4])
	}
	if length == 0 || at+length > p.End {
		return p.End
	}
	return at + length
}
