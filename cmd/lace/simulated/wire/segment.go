package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"lace-cni.io/lace/fastpath/checksum"
	"lace-cni.io/lace/fastpath/packet"
)

// Segment is one TCP segment or UDP datagram, or an ICMP port unreachable about one.
type Segment struct {
	Src, Dst netip.AddrPort
	Protocol uint8 // packet.ProtocolTCP or ProtocolUDP
	Flags    uint8 // TCP
	Seq, Ack uint32
	Payload  []byte
	// Unreachable: the segment is the one that an ICMP error quotes, so that Src is the
	// host that the error is for.
	Unreachable bool
}

// window is the receive window in every TCP header; nothing here fills it.
const window = 65535

// Frame builds an Ethernet frame without MAC addresses, checksums right.
func (s *Segment) Frame() []byte {
	header := packet.UDPLen
	if s.Protocol == packet.ProtocolTCP {
		header = packet.TCPLen
	}
	length := header + len(s.Payload)
	ip := packet.IPv4Len
	if s.Dst.Addr().Is6() {
		ip = packet.IPv6Len
	}
	b := make([]byte, packet.EthernetLen+ip+length)
	l4 := b[packet.EthernetLen+ip:]
	s.writeIP(b[12:], length)
	binary.BigEndian.PutUint16(l4, s.Src.Port())
	binary.BigEndian.PutUint16(l4[2:], s.Dst.Port())
	copy(l4[header:], s.Payload)
	src, dst := s.Src.Addr().As16(), s.Dst.Addr().As16()
	pseudo := checksum.Pseudo(&src, &dst, s.Protocol, length)
	if s.Protocol == packet.ProtocolTCP {
		binary.BigEndian.PutUint32(l4[4:], s.Seq)
		binary.BigEndian.PutUint32(l4[8:], s.Ack)
		l4[12], l4[13] = packet.TCPLen/4<<4, s.Flags
		binary.BigEndian.PutUint16(l4[14:], window)
		checksum.Put(l4[16:], checksum.Of(pseudo, l4))
		return b
	}
	binary.BigEndian.PutUint16(l4[4:], uint16(length))
	checksum.Put(l4[6:], checksum.NonZero(checksum.Of(pseudo, l4)))
	return b
}

// hopLimit of everything sent here.
const hopLimit = 64

// writeIP writes ether type and IP header for so many bytes of payload.
func (s *Segment) writeIP(b []byte, length int) {
	ip := b[2:]
	if s.Dst.Addr().Is6() {
		binary.BigEndian.PutUint16(b, 0x86dd)
		ip[0] = 6 << 4
		binary.BigEndian.PutUint16(ip[4:], uint16(length))
		ip[6], ip[7] = s.Protocol, hopLimit
		copy(ip[8:], s.Src.Addr().AsSlice())
		copy(ip[24:], s.Dst.Addr().AsSlice())
		return
	}
	binary.BigEndian.PutUint16(b, 0x0800)
	ip[0] = 4<<4 | packet.IPv4Len/4
	binary.BigEndian.PutUint16(ip[2:], uint16(packet.IPv4Len+length))
	ip[6] = 0x40 // do not fragment
	ip[8], ip[9] = hopLimit, s.Protocol
	copy(ip[12:], s.Src.Addr().AsSlice())
	copy(ip[16:], s.Dst.Addr().AsSlice())
	checksum.Put(ip[10:], checksum.Of(0, ip[:packet.IPv4Len]))
}

// errNotOurs is a frame that hosts here do not understand.
var errNotOurs = errors.New("neither TCP nor UDP nor a port unreachable")

// ReadFrame reads a frame and verifies its checksums. The payload is a copy.
func ReadFrame(frame []byte) (Segment, error) {
	var p packet.Packet
	outcome := p.Parse(frame)
	if outcome != packet.OK && outcome != packet.NoPorts || p.Fragment {
		return Segment{}, errNotOurs
	}
	if err := whole(&p); err != nil {
		return Segment{}, err
	}
	l4 := frame[p.L4:p.End]
	if unreachable(&p) {
		return quoted(l4[packet.ICMPLen:])
	}
	s := Segment{
		Src:      netip.AddrPortFrom(p.Src.Netip(), p.SrcPort),
		Dst:      netip.AddrPortFrom(p.Dst.Netip(), p.DstPort),
		Protocol: p.Protocol, Flags: p.Flags,
	}
	switch p.Protocol {
	case packet.ProtocolTCP:
		s.Seq, s.Ack = binary.BigEndian.Uint32(l4[4:]), binary.BigEndian.Uint32(l4[8:])
		s.Payload = append(s.Payload, l4[int(l4[12]>>4)*4:]...)
	case packet.ProtocolUDP:
		s.Payload = append(s.Payload, l4[packet.UDPLen:]...)
	default:
		return Segment{}, errNotOurs
	}
	return s, nil
}

// whole verifies every checksum of a packet.
func whole(p *packet.Packet) error {
	ip, l4 := p.Frame[p.L3:p.L4], p.Frame[p.L4:p.End]
	if p.Family == 4 && !checksum.Valid(0, ip) {
		return fmt.Errorf("IPv4 header from %s to %s: wrong checksum", p.Src, p.Dst)
	}
	var pseudo uint16
	if p.Protocol != packet.ProtocolICMP {
		src, dst := [16]byte(p.Src), [16]byte(p.Dst)
		pseudo = checksum.Pseudo(&src, &dst, p.Protocol, len(l4))
	}
	if !checksum.Valid(pseudo, l4) {
		return fmt.Errorf("protocol %d from %s to %s: wrong checksum", p.Protocol, p.Src, p.Dst)
	}
	return nil
}

// unreachable says whether p is an ICMP or ICMPv6 port unreachable (RFC 792, RFC 4443).
func unreachable(p *packet.Packet) bool {
	return p.Protocol == packet.ProtocolICMP && p.ICMPType == 3 && p.ICMPCode == 3 ||
		p.Protocol == packet.ProtocolICMPv6 && p.ICMPType == 1 && p.ICMPCode == 4
}

// quoted reads the packet inside an ICMP error, of which at least addresses and ports are
// there; its checksums are not verified, the rest may be missing.
func quoted(b []byte) (Segment, error) {
	var protocol uint8
	var src, dst netip.Addr
	switch {
	case len(b) >= packet.IPv4Len && b[0]>>4 == 4:
		protocol = b[9]
		src, _ = netip.AddrFromSlice(b[12:16])
		dst, _ = netip.AddrFromSlice(b[16:20])
		b = b[min(len(b), int(b[0]&15)*4):]
	case len(b) >= packet.IPv6Len && b[0]>>4 == 6:
		protocol = b[6]
		src, _ = netip.AddrFromSlice(b[8:24])
		dst, _ = netip.AddrFromSlice(b[24:40])
		b = b[packet.IPv6Len:]
	}
	if !src.IsValid() || len(b) < 4 {
		return Segment{}, fmt.Errorf("port unreachable: the quoted packet is too short")
	}
	return Segment{
		Src:      netip.AddrPortFrom(src, binary.BigEndian.Uint16(b)),
		Dst:      netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:])),
		Protocol: protocol, Unreachable: true,
	}, nil
}

// Destination is the address that a frame is for, without a look at its checksums.
func Destination(frame []byte) (netip.Addr, error) {
	var p packet.Packet
	if o := p.Parse(frame); o != packet.OK && o != packet.NoPorts {
		return netip.Addr{}, errNotOurs
	}
	return p.Dst.Netip(), nil
}
