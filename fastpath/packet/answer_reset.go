package packet

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/checksum"
)

// WriteReset writes the TCP reset that a closed port gives to p (RFC 9293, section
// 3.10.7.1) into dst and returns the length of the frame. Its source is p's destination.
// The link header is copied from p; WriteInject then addresses it on the trunk.
//
// 0 means that nothing was written: p, whose last outcome must have been OK, is not TCP,
// is a reset itself or a fragment, comes from or goes to no single host, or dst is shorter
// than the 78 bytes that MaxAnswer bounds. dst may be p's own frame, cut anew to its
// capacity; p describes that frame no longer then.
func WriteReset(dst []byte, p *Packet) int {
	if p.Protocol != ProtocolTCP || p.Flags&FlagRST != 0 || p.Fragment || !p.answerable() {
		return 0
	}
	size := p.L3 + p.ipLen() + TCPLen
	if len(dst) < size {
		return 0
	}
	seq, ack, flags := p.reset()
	at := p.writeIP(dst, &p.Dst, ProtocolTCP, 0, TCPLen)
	tcp := dst[at:size]
	clear(tcp)
	binary.BigEndian.PutUint16(tcp, p.DstPort)
	binary.BigEndian.PutUint16(tcp[2:], p.SrcPort)
	binary.BigEndian.PutUint32(tcp[4:], seq)
	binary.BigEndian.PutUint32(tcp[8:], ack)
	tcp[12], tcp[13] = TCPLen/4<<4, flags
	checksum.Put(tcp[16:], checksum.Of(p.pseudo(&p.Dst, ProtocolTCP, TCPLen), tcp))
	return size
}

// reset is what the reset carries: the sequence number that the sender expects, or, when
// it did not say, an acknowledgement of all it sent.
func (p *Packet) reset() (seq, ack uint32, flags uint8) {
	tcp := p.Frame[p.L4:p.End]
	if p.Flags&FlagACK != 0 {
		return binary.BigEndian.Uint32(tcp[8:]), 0, FlagRST
	}
	length := uint32(len(tcp) - int(tcp[12]>>4)*4)
	if p.Flags&FlagSYN != 0 {
		length++
	}
	if p.Flags&FlagFIN != 0 {
		length++
	}
	return 0, binary.BigEndian.Uint32(tcp[4:]) + length, FlagRST | FlagACK
}
