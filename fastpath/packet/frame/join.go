package frame

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// Datagram names what fragments belong together to whoever puts them together.
type Datagram struct {
	Src, Dst netip.Addr
	ID       uint32
	Protocol uint8
}

// Part is one fragment, taken apart.
type Part struct {
	Of   Datagram
	From int
	More bool
	b    []byte
	data []byte
}

// ReadPart takes a fragment without options, extension headers or VLAN tag apart.
func ReadPart(b []byte) (p Part, err error) {
	p.b = b
	switch {
	case len(b) >= 34 && b[12] == 0x08:
		word := binary.BigEndian.Uint16(b[20:])
		p.Of = Datagram{netip.AddrFrom4([4]byte(b[26:30])), netip.AddrFrom4([4]byte(b[30:34])), uint32(binary.BigEndian.Uint16(b[18:])), b[23]}
		p.From, p.More, p.data = int(word&0x1fff)*8, word&0x2000 != 0, payloadOf(b)
	case len(b) >= 62 && b[20] == frag:
		word := binary.BigEndian.Uint16(b[56:])
		p.Of = Datagram{netip.AddrFrom16([16]byte(b[22:38])), netip.AddrFrom16([16]byte(b[38:54])), binary.BigEndian.Uint32(b[58:]), b[54]}
		p.From, p.More, p.data = int(word&^7), word&1 != 0, payloadOf(b)[8:]
	default:
		return p, fmt.Errorf("no fragment: %x", b)
	}
	return p, nil
}

// Join puts the fragments of one datagram together, in any order, the slow and obvious way.
// They must cover it without gap or overlap.
func Join(parts []Part) ([]byte, error) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Part) int { return a.From - b.From })
	var whole []byte
	for i, p := range parts {
		if p.From != len(whole) || p.More != (i < len(parts)-1) {
			return nil, fmt.Errorf("fragment %d of %d begins at %d, more %v: %d bytes are there", i+1, len(parts), p.From, p.More, len(whole))
		}
		whole = append(whole, p.data...)
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("no fragments")
	}
	b := parts[0].b
	if b[12] == 0x08 {
		h := slices.Clone(b[:34])
		return pieceIPv4(h, parts[0].Of.ID, 0, false, whole), nil
	}
	h := slices.Clone(b[:54])
	h[20] = b[54]
	binary.BigEndian.PutUint16(h[18:], uint16(len(whole)))
	return append(h, whole...), nil
}
