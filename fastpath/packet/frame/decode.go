package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Decode reads a frame back into its description. It does not verify checksums, see
// Check.
func Decode(b []byte) (Frame, error) {
	f, l4, err := decode(b)
	if err != nil {
		return Frame{}, err
	}
	return f, f.readTransport(l4)
}

// decode reads all up to the transport header and returns what lies from there on.
func decode(b []byte) (f Frame, l4 []byte, err error) {
	var eth layers.Ethernet
	if err := eth.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
		return f, nil, fmt.Errorf("ethernet: %w", err)
	}
	f.DstMAC, f.SrcMAC = [6]byte(eth.DstMAC), [6]byte(eth.SrcMAC)
	kind, rest := eth.EthernetType, b[14:]
	if kind == layers.EthernetTypeDot1Q {
		var tag layers.Dot1Q
		if err := tag.DecodeFromBytes(rest, gopacket.NilDecodeFeedback); err != nil {
			return f, nil, fmt.Errorf("802.1Q: %w", err)
		}
		f.Tagged, f.VLAN = true, tag.VLANIdentifier
		kind, rest = tag.Type, rest[4:]
	}
	switch kind {
	case layers.EthernetTypeIPv4:
		l4, err = f.readIPv4(rest)
	case layers.EthernetTypeIPv6:
		l4, err = f.readIPv6(rest)
	default:
		err = fmt.Errorf("ether type %v is not IP", kind)
	}
	return f, l4, err
}

func (f *Frame) readIPv4(b []byte) ([]byte, error) {
	var ip layers.IPv4
	if err := ip.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
		return nil, fmt.Errorf("IPv4: %w", err)
	}
	if int(ip.Length) > len(b) {
		return nil, fmt.Errorf("IPv4: length %d, frame has %d", ip.Length, len(b))
	}
	f.address(ip.SrcIP, ip.DstIP)
	f.Protocol, f.TTL, f.TOS, f.ID = uint8(ip.Protocol), ip.TTL, ip.TOS, uint32(ip.Id)
	f.DF, f.More = ip.Flags&layers.IPv4DontFragment != 0, ip.Flags&layers.IPv4MoreFragments != 0
	f.Offset, f.Options = 8*ip.FragOffset, ip.Contents[20:]
	f.Padding = len(b) - int(ip.Length)
	return b[4*int(ip.IHL) : ip.Length], nil
}

func (f *Frame) readIPv6(b []byte) ([]byte, error) {
	if len(b) < 40 {
		return nil, errors.New("IPv6: too short")
	}
	var ip layers.IPv6
	if err := ip.DecodeFromBytes(b[:40], gopacket.NilDecodeFeedback); err != nil && ip.Length == 0 {
		return nil, fmt.Errorf("IPv6: %w", err)
	}
	if 40+int(ip.Length) > len(b) {
		return nil, fmt.Errorf("IPv6: length %d, frame has %d behind the header", ip.Length, len(b)-40)
	}
	f.address(ip.SrcIP, ip.DstIP)
	f.TTL, f.TOS = ip.HopLimit, ip.TrafficClass
	f.Padding = len(b) - 40 - int(ip.Length)
	return f.readExtensions(uint8(ip.NextHeader), b[40:40+int(ip.Length)])
}

func (f *Frame) readExtensions(next uint8, b []byte) ([]byte, error) {
	for {
		switch layers.IPProtocol(next) {
		case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Fragment, layers.IPProtocolIPv6Destination, layers.IPProtocolAH:
		default:
			f.Protocol = next
			return b, nil
		}
		if len(b) < 8 {
			return nil, fmt.Errorf("extension header %d: too short", next)
		}
		n := 8 * (int(b[1]) + 1)
		switch next {
		case frag:
			n = 8
		case ah:
			n = 4 * (int(b[1]) + 2)
		}
		if len(b) < n {
			return nil, fmt.Errorf("extension header %d: %d bytes of %d", next, len(b), n)
		}
		if word := binary.BigEndian.Uint16(b[2:]); next == frag && word&^6 != 0 {
			f.Offset, f.More, f.ID = word&^7, word&1 != 0, binary.BigEndian.Uint32(b[4:])
			if f.Offset != 0 {
				f.Protocol = b[0]
				return b[n:], nil
			}
		} else {
			f.Extensions = append(f.Extensions, Extension{Type: next, Body: b[2:n]})
		}
		next, b = b[0], b[n:]
	}
}

func (f *Frame) address(src, dst net.IP) {
	s, _ := netip.AddrFromSlice(src)
	d, _ := netip.AddrFromSlice(dst)
	f.Src, f.Dst = netip.AddrPortFrom(s, 0), netip.AddrPortFrom(d, 0)
}

func (f *Frame) ports(src, dst uint16) {
	f.Src, f.Dst = netip.AddrPortFrom(f.Src.Addr(), src), netip.AddrPortFrom(f.Dst.Addr(), dst)
}

func (f *Frame) readTransport(b []byte) error {
	f.Payload = b
	if f.Offset != 0 {
		return nil
	}
	switch f.Protocol {
	case tcp:
		return f.readTCP(b)
	case udp:
		if len(b) < 8 {
			return fmt.Errorf("UDP: %d bytes", len(b))
		}
		f.ports(binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]))
		f.NoChecksum, f.Payload = b[6] == 0 && b[7] == 0, b[8:]
	case sctp:
		if len(b) < 12 {
			return fmt.Errorf("SCTP: %d bytes", len(b))
		}
		f.ports(binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]))
		f.Tag, f.Payload = binary.BigEndian.Uint32(b[4:]), b[12:]
	case icmp, icmpv6:
		if len(b) < 8 {
			return fmt.Errorf("ICMP: %d bytes", len(b))
		}
		f.ICMPType, f.ICMPCode, f.ICMPRest, f.Payload = b[0], b[1], binary.BigEndian.Uint32(b[4:]), b[8:]
	}
	return nil
}

func (f *Frame) readTCP(b []byte) error {
	var h layers.TCP
	if err := h.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
		return fmt.Errorf("TCP: %w", err)
	}
	f.ports(uint16(h.SrcPort), uint16(h.DstPort))
	f.Flags, f.Seq, f.Ack, f.Window, f.Payload = b[13], h.Seq, h.Ack, h.Window, h.Payload
	return nil
}
