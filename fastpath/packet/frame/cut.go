package frame

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Cut cuts a frame without VLAN tag into fragments whose packets are at most mtu bytes, as a
// sender would: in order, all but the last as long as they may be. IPv6 packets must not
// have extension headers. It panics when a fragment would have no room.
func Cut(b []byte, id uint32, mtu int) [][]byte {
	size := (mtu - headerLen(b)) &^ 7
	if size < 8 {
		panic(fmt.Sprintf("frame: no fragments in packets of %d bytes", mtu))
	}
	var all [][]byte
	whole := payloadOf(b)
	for at := 0; at < len(whole); at += size {
		end := min(at+size, len(whole))
		all = append(all, Piece(b, id, at, end, end < len(whole)))
	}
	return all
}

// Piece is one fragment of a frame as for Cut: bytes from up to to of what is behind its IP
// header, or zeros where there is nothing.
func Piece(b []byte, id uint32, from, to int, more bool) []byte {
	whole := payloadOf(b)
	part := make([]byte, to-from)
	if from < len(whole) {
		copy(part, whole[from:])
	}
	if b[12] == 0x08 {
		return pieceIPv4(b, id, from, more, part)
	}
	h := slices.Clone(b[14:54])
	binary.BigEndian.PutUint16(h[4:], uint16(8+len(part)))
	f := make([]byte, 8)
	f[0], h[6] = h[6], frag
	word := uint16(from)
	if more {
		word |= 1
	}
	binary.BigEndian.PutUint16(f[2:], word)
	binary.BigEndian.PutUint32(f[4:], id)
	return slices.Concat(b[:14], h, f, part)
}

func pieceIPv4(b []byte, id uint32, from int, more bool, part []byte) []byte {
	h := slices.Clone(b[14 : 14+4*int(b[14]&15)])
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(part)))
	binary.BigEndian.PutUint16(h[4:], uint16(id))
	word := uint16(from / 8)
	if more {
		word |= 0x2000
	}
	binary.BigEndian.PutUint16(h[6:], word)
	binary.BigEndian.PutUint16(h[10:], 0)
	sum := uint32(0)
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
	return slices.Concat(b[:14], h, part)
}

// headerLen is the length of the IP headers of a fragment of b.
func headerLen(b []byte) int {
	if b[12] == 0x08 {
		return 4 * int(b[14]&15)
	}
	return 48
}

func payloadOf(b []byte) []byte {
	if b[12] == 0x08 {
		return b[14+4*int(b[14]&15) : 14+int(binary.BigEndian.Uint16(b[16:]))]
	}
	return b[54 : 54+int(binary.BigEndian.Uint16(b[18:]))]
}
