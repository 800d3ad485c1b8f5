// Package frame builds, reads and checks Ethernet frames for tests and benches. It uses
// gopacket and arithmetic of its own and shares nothing with the packet path, so that
// it can be the judge of it. Nothing but tests and benches may import it; it is slow
// and allocates as it likes.
//
//	in := frame.TCP("10.0.0.1:4000", "10.96.0.1:80", packet.FlagSYN, "")
//	out := process(in.Bytes())
//	want := in.To("10.244.1.3:8080")
//	want.TTL--
//	got, err := frame.Decode(out)      // and frame.Check(out)
//	frame.Diff(want, got)              // "" when alike
package frame

import (
	"net/netip"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Frame describes one frame, every field as it is on the wire. The functions below
// give frames with usual values.
type Frame struct {
	DstMAC, SrcMAC [6]byte
	Tagged         bool // one 802.1Q tag
	VLAN           uint16

	Src, Dst   netip.AddrPort // ports are 0 for protocols without
	Protocol   uint8          // transport protocol, IANA number
	TTL        uint8          // time to live or hop limit
	TOS        uint8          // type of service or traffic class
	DF         bool           // IPv4: do not fragment
	Options    []byte         // IPv4 options, a multiple of 4 bytes
	Extensions []Extension    // IPv6 extension headers but the fragment header that ID, Offset and More make

	ID     uint32 // fragment identification
	Offset uint16 // fragment offset in bytes; above 0 Payload is all behind the IP headers
	More   bool   // more fragments follow

	Flags    uint8  // TCP flags
	Seq, Ack uint32 // TCP
	Window   uint16 // TCP
	Tag      uint32 // SCTP verification tag

	ICMPType, ICMPCode uint8
	ICMPRest           uint32 // second word of the ICMP header

	NoChecksum bool // UDP without checksum
	Payload    []byte
	Padding    int // bytes behind the IP packet
}

// Extension is one IPv6 extension header.
type Extension struct {
	Type uint8  // its protocol number
	Body []byte // all behind the next-header and length octets: 6, 14, 22 ... bytes
}

// Protocol numbers.
const (
	icmp   = 1
	tcp    = 6
	udp    = 17
	frag   = 44
	ah     = 51
	icmpv6 = 58
	sctp   = 132
)

// TCP is a segment from ADDR:PORT to ADDR:PORT ("10.0.0.1:80", "[fd00::1]:80"). Like
// the functions below it panics when an address is none, which is a fault of the test.
func TCP(src, dst string, flags uint8, payload string) Frame {
	f := between(src, dst, tcp, payload)
	f.Flags, f.Seq, f.Ack, f.Window = flags, 1000, 2000, 64240
	f.DF = f.Src.Addr().Is4()
	return f
}

// UDP is a datagram from ADDR:PORT to ADDR:PORT.
func UDP(src, dst string, payload string) Frame { return between(src, dst, udp, payload) }

// SCTP is a packet from ADDR:PORT to ADDR:PORT; payload is its chunks.
func SCTP(src, dst string, payload string) Frame {
	f := between(src, dst, sctp, payload)
	f.Tag = 0x01020304
	return f
}

// ICMP is an ICMP or ICMPv6 message from ADDR to ADDR.
func ICMP(src, dst string, typ, code uint8, payload string) Frame {
	f := Raw(src, dst, icmp, payload)
	if f.Src.Addr().Is6() {
		f.Protocol = icmpv6
	}
	f.ICMPType, f.ICMPCode = typ, code
	return f
}

// Raw is a packet of any protocol from ADDR to ADDR, payload being all behind the IP header.
func Raw(src, dst string, protocol uint8, payload string) Frame {
	f := usual(payload)
	f.Src = netip.AddrPortFrom(netip.MustParseAddr(src), 0)
	f.Dst = netip.AddrPortFrom(netip.MustParseAddr(dst), 0)
	f.Protocol = protocol
	return f
}

func between(src, dst string, protocol uint8, payload string) Frame {
	f := usual(payload)
	f.Src, f.Dst, f.Protocol = netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst), protocol
	return f
}

func usual(payload string) Frame {
	f := Frame{DstMAC: [6]byte{2, 0, 0, 0, 0, 1}, SrcMAC: [6]byte{2, 0, 0, 0, 0, 2}, TTL: 64}
	if payload != "" {
		f.Payload = []byte(payload)
	}
	return f
}

// From is f with another source, To with another destination, ADDR:PORT each.
func (f Frame) From(src string) Frame { f.Src = netip.MustParseAddrPort(src); return f }

// To is f with another destination.
func (f Frame) To(dst string) Frame { f.Dst = netip.MustParseAddrPort(dst); return f }

// Swapped is f on its way back: addresses and ports exchanged.
func (f Frame) Swapped() Frame { f.Src, f.Dst = f.Dst, f.Src; return f }

// Diff tells how two descriptions differ, "" when they do not. MAC addresses are left
// out: on the trunk they carry other things.
func Diff(want, got Frame) string {
	want.DstMAC, want.SrcMAC = got.DstMAC, got.SrcMAC
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{}), cmpopts.EquateEmpty())
}
