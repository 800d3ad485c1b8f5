// Package frame builds and reads frames for tests and benches with gopacket, code that
// shares nothing with the packet path. Nothing else may import it.
package frame

import (
	"errors"
	"net/netip"
)

// Frame describes one frame. The zero value of a field means its usual value.
type Frame struct {
	DstMAC, SrcMAC [6]byte
	Tagged         bool // one 802.1Q tag
	VLAN           uint16

	Src, Dst netip.AddrPort // ports 0 for protocols without
	Protocol uint8          // transport protocol
	TTL      uint8          // 0: 64
	TOS      uint8          // traffic class in IPv6

	Options    []byte // IPv4 options, padded to words
	Extensions []Extension
	ID         uint32
	Offset     uint16 // fragment offset in bytes
	More       bool   // more fragments follow
	DF         bool

	Flags      uint8  // TCP
	Seq, Ack   uint32 // TCP
	Window     uint16 // TCP
	ICMPType   uint8
	ICMPCode   uint8
	ICMPRest   uint32 // second word of the ICMP header
	NoChecksum bool   // UDP over IPv4 without checksum
	Payload    []byte
	Padding    int // zero bytes behind the IP packet
}

// Extension is one IPv6 extension header.
type Extension struct {
	Type uint8  // its protocol number
	Body []byte // all behind the next-header and length octets, padded to 8 bytes
}

// TCP, UDP, SCTP and ICMP describe ordinary frames between ADDR:PORT and ADDR:PORT
// ("10.0.0.1:80", "[fd00::1]:80"; for ICMP the ports are 0).
func TCP(src, dst string, flags uint8, payload string) Frame { return Frame{} }
func UDP(src, dst string, payload string) Frame              { return Frame{} }
func SCTP(src, dst string, payload string) Frame             { return Frame{} }
func ICMP(src, dst string, typ, code uint8, payload string) Frame {
	return Frame{}
}

// Bytes builds the frame, all lengths and checksums right. It panics when the
// description makes no sense, which is a fault of the test.
func (f Frame) Bytes() []byte { panic("not there yet") }

// Decode reads a frame back, so that tests can compare descriptions.
func Decode(b []byte) (Frame, error) { return Frame{}, errors.New("not there yet") }

// Check verifies lengths and every checksum of a frame.
func Check(b []byte) error { return errors.New("not there yet") }
