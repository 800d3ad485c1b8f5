package xdp

import (
	"encoding/binary"
	"net/netip"
)

// Frames are built by hand, byte for byte, so that the expectation does not come from the
// parser that the fast path uses.

var (
	macA = [6]byte{0x02, 0xaa, 0, 0, 0, 1}
	macB = [6]byte{0x02, 0xbb, 0, 0, 0, 2}
)

func ethernet(proto uint16, payload []byte) []byte {
	b := append(append([]byte{}, macB[:]...), macA[:]...)
	b = binary.BigEndian.AppendUint16(b, proto)
	return append(b, payload...)
}

func addr(s string) []byte { return netip.MustParseAddr(s).AsSlice() }

// ip4 is one IPv4 header and payload; flags holds the fragment field, options are padded.
func ip4(src, dst string, proto byte, flags uint16, options, payload []byte) []byte {
	header := 20 + len(options)
	b := []byte{0x40 | byte(header/4), 0}
	b = binary.BigEndian.AppendUint16(b, uint16(header+len(payload)))
	b = append(b, 0x12, 0x34)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, 64, proto, 0, 0)
	b = append(append(b, addr(src)...), addr(dst)...)
	b = append(b, options...)
	binary.BigEndian.PutUint16(b[10:], ^ones(b))
	return ethernet(0x0800, append(b, payload...))
}

// ip6 is one IPv6 header; next is the type of what payload begins with.
func ip6(src, dst string, next byte, payload []byte) []byte {
	b := []byte{0x60, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	b = append(b, next, 64)
	b = append(append(b, addr(src)...), addr(dst)...)
	return ethernet(0x86dd, append(b, payload...))
}

func ones(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

func ports(src, dst uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, src), dst)
}

func udp(src, dst uint16) []byte {
	return append(ports(src, dst), 0, 12, 0, 0, 'l', 'a', 'c', 'e')
}

func tcp(src, dst uint16) []byte {
	b := append(ports(src, dst), 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0)
	return b
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// from makes the first packet of a client, over either family.
func from(src, dst string, proto byte, l4 []byte) []byte {
	if netip.MustParseAddr(src).Is4() {
		return ip4(src, dst, proto, 0x4000, nil, l4)
	}
	return ip6(src, dst, proto, l4)
}
