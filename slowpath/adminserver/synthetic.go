package adminserver

import (
	"encoding/binary"
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
)

const (
	etherLen  = 14
	room      = 2048 // capacity of a frame: the pipeline writes answers in place
	startTTL  = 64
	udpLen    = 8
	tcpLen    = 20
	sctpLen   = 12 + 20 // common header and an INIT chunk
	ipv4Len   = 20
	ipv6Len   = 40
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
)

// synthetic builds the first packet of a connection, as a client would send it: a TCP
// SYN, an SCTP INIT or an empty datagram. Checksums are not right: the receiver verifies
// them, and this packet never has one.
func synthetic(from, to netip.AddrPort, protocol model.Protocol) []byte {
	transport := transportOf(from.Port(), to.Port(), protocol)
	b := make([]byte, etherLen, room)
	if to.Addr().Is4() {
		binary.BigEndian.PutUint16(b[12:], etherIPv4)
		b = append(b, ipv4Header(from.Addr(), to.Addr(), protocol, len(transport))...)
	} else {
		binary.BigEndian.PutUint16(b[12:], etherIPv6)
		b = append(b, ipv6Header(from.Addr(), to.Addr(), protocol, len(transport))...)
	}
	return append(b, transport...)
}

func ipv4Header(from, to netip.Addr, protocol model.Protocol, payload int) []byte {
	h := make([]byte, ipv4Len)
	h[0] = 0x45
	binary.BigEndian.PutUint16(h[2:], uint16(ipv4Len+payload))
	h[6] = 0x40 // do not fragment
	h[8], h[9] = startTTL, uint8(protocol)
	copy(h[12:], from.AsSlice())
	copy(h[16:], to.AsSlice())
	return h
}

func ipv6Header(from, to netip.Addr, protocol model.Protocol, payload int) []byte {
	h := make([]byte, ipv6Len)
	h[0] = 0x60
	binary.BigEndian.PutUint16(h[4:], uint16(payload))
	h[6], h[7] = uint8(protocol), startTTL
	copy(h[8:], from.AsSlice())
	copy(h[24:], to.AsSlice())
	return h
}

func transportOf(from, to uint16, protocol model.Protocol) []byte {
	var h []byte
	switch protocol {
	case model.TCP:
		h = make([]byte, tcpLen)
		h[12], h[13] = tcpLen/4<<4, packet.FlagSYN
		binary.BigEndian.PutUint16(h[14:], 65535)
	case model.SCTP:
		h = make([]byte, sctpLen)
		h[12] = 1 // INIT, RFC 9260 section 3.3.2
		binary.BigEndian.PutUint16(h[14:], sctpLen-12)
	default:
		h = make([]byte, udpLen)
		binary.BigEndian.PutUint16(h[4:], udpLen)
		binary.BigEndian.PutUint16(h[6:], 0xffff) // not 0: IPv6 has no datagram without one
	}
	binary.BigEndian.PutUint16(h[0:], from)
	binary.BigEndian.PutUint16(h[2:], to)
	return h
}
