package frame

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/gopacket/gopacket"
)

// Check verifies that a frame is well formed: lengths, the IPv4 header checksum and the
// transport checksum. Of a fragment only the IP header is verified.
func Check(b []byte) error {
	f, l4, err := decode(b)
	if err != nil {
		return err
	}
	if f.Src.Addr().Is4() {
		if err := checkIPv4(b, f.Tagged); err != nil {
			return err
		}
	}
	if f.Offset != 0 || f.More {
		return nil
	}
	if err := f.readTransport(l4); err != nil {
		return err
	}
	return f.checkTransport(l4)
}

func checkIPv4(b []byte, tagged bool) error {
	h := b[14:]
	if tagged {
		h = b[18:]
	}
	if sum := gopacket.FoldChecksum(gopacket.ComputeChecksum(h[:4*int(h[0]&15)], 0)); sum != 0 {
		return fmt.Errorf("IPv4 header checksum is off by %#04x", sum)
	}
	return nil
}

func (f *Frame) checkTransport(l4 []byte) error {
	switch f.Protocol {
	case udp:
		n := int(binary.BigEndian.Uint16(l4[4:]))
		if n < 8 || n > len(l4) {
			return fmt.Errorf("UDP length %d of %d bytes", n, len(l4))
		}
		if f.NoChecksum {
			if f.Src.Addr().Is6() {
				return fmt.Errorf("UDP over IPv6 without checksum")
			}
			return nil
		}
		return f.checkSum(l4[:n], true)
	case tcp, icmpv6:
		return f.checkSum(l4, true)
	case icmp:
		return f.checkSum(l4, false)
	case sctp:
		return checkCRC(l4)
	}
	return nil
}

func (f *Frame) checkSum(l4 []byte, pseudo bool) error {
	sum := uint32(0)
	if pseudo {
		sum = pseudoHeader(f.Src.Addr(), f.Dst.Addr(), f.Protocol, len(l4))
	}
	if off := gopacket.FoldChecksum(gopacket.ComputeChecksum(l4, sum)); off != 0 {
		return fmt.Errorf("checksum of protocol %d is off by %#04x", f.Protocol, off)
	}
	return nil
}

func pseudoHeader(src, dst netip.Addr, protocol uint8, length int) uint32 {
	b := append(src.AsSlice(), dst.AsSlice()...)
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	b = binary.BigEndian.AppendUint32(b, uint32(protocol))
	return gopacket.ComputeChecksum(b, 0)
}

func checkCRC(l4 []byte) error {
	b := append([]byte(nil), l4...)
	clear(b[8:12])
	if got, want := binary.LittleEndian.Uint32(l4[8:]), CRC32c(b); got != want {
		return fmt.Errorf("SCTP checksum is %08x, want %08x", got, want)
	}
	return nil
}

// CRC32c is the checksum of SCTP, bit by bit as its definition has it (RFC 9260,
// appendix A: polynomial 1EDC6F41, reflected).
func CRC32c(b []byte) uint32 {
	crc := ^uint32(0)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ 0x82f63b78
			} else {
				crc >>= 1
			}
		}
	}
	return ^crc
}
