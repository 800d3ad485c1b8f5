package frame

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

var fix = gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}

// Bytes builds the frame, lengths and checksums right, with room behind it: its
// capacity exceeds its length by 2 KiB. The checksum of a first fragment covers that
// fragment alone. It panics when the description makes no sense.
func (f Frame) Bytes() []byte {
	b, err := f.Build()
	if err != nil {
		panic(fmt.Sprintf("frame.Bytes: %v", err))
	}
	return b
}

// Build is Bytes with an error instead of a panic.
func (f Frame) Build() ([]byte, error) {
	if f.Src.Addr().Is4() != f.Dst.Addr().Is4() || !f.Src.IsValid() || !f.Dst.IsValid() {
		return nil, fmt.Errorf("%v to %v is no pair of addresses of one family", f.Src, f.Dst)
	}
	body := f.Payload
	if f.Offset == 0 {
		var err error
		if body, err = f.transport(); err != nil {
			return nil, fmt.Errorf("transport header: %w", err)
		}
	}
	packet, err := f.network(body)
	if err != nil {
		return nil, fmt.Errorf("IP header: %w", err)
	}
	b := append(make([]byte, 0, 18+len(packet)+f.Padding+2048), f.ethernet()...)
	b = append(b, packet...)
	return append(b, make([]byte, f.Padding)...), nil
}

func (f *Frame) ethernet() []byte {
	b := append(f.DstMAC[:], f.SrcMAC[:]...)
	if f.Tagged {
		b = binary.BigEndian.AppendUint16(b, uint16(layers.EthernetTypeDot1Q))
		b = binary.BigEndian.AppendUint16(b, f.VLAN)
	}
	if f.Src.Addr().Is4() {
		return binary.BigEndian.AppendUint16(b, uint16(layers.EthernetTypeIPv4))
	}
	return binary.BigEndian.AppendUint16(b, uint16(layers.EthernetTypeIPv6))
}

// serialize puts layers together and copies them out of gopacket's buffer.
func serialize(l ...gopacket.SerializableLayer) ([]byte, error) {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, fix, l...); err != nil {
		return nil, err
	}
	return append([]byte(nil), b.Bytes()...), nil
}

// transport is the transport header and payload, checksum right.
func (f *Frame) transport() ([]byte, error) {
	payload := gopacket.Payload(f.Payload)
	switch f.Protocol {
	case tcp:
		h := &layers.TCP{SrcPort: layers.TCPPort(f.Src.Port()), DstPort: layers.TCPPort(f.Dst.Port()), Seq: f.Seq, Ack: f.Ack, Window: f.Window}
		h.FIN, h.SYN, h.RST, h.PSH = f.Flags&1 != 0, f.Flags&2 != 0, f.Flags&4 != 0, f.Flags&8 != 0
		h.ACK, h.URG, h.ECE, h.CWR = f.Flags&16 != 0, f.Flags&32 != 0, f.Flags&64 != 0, f.Flags&128 != 0
		return f.summed(h, payload)
	case udp:
		b, err := f.summed(&layers.UDP{SrcPort: layers.UDPPort(f.Src.Port()), DstPort: layers.UDPPort(f.Dst.Port())}, payload)
		if err == nil && f.NoChecksum {
			b[6], b[7] = 0, 0
		}
		return b, err
	case sctp:
		return serialize(&layers.SCTP{SrcPort: layers.SCTPPort(f.Src.Port()), DstPort: layers.SCTPPort(f.Dst.Port()), VerificationTag: f.Tag}, payload)
	case icmp:
		return serialize(&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(f.ICMPType, f.ICMPCode),
			Id: uint16(f.ICMPRest >> 16), Seq: uint16(f.ICMPRest)}, payload)
	case icmpv6:
		rest := binary.BigEndian.AppendUint32(nil, f.ICMPRest)
		return f.summed(&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(f.ICMPType, f.ICMPCode)}, gopacket.Payload(append(rest, f.Payload...)))
	}
	return f.Payload, nil
}

// summed serializes a layer whose checksum covers the addresses.
func (f *Frame) summed(h interface {
	gopacket.SerializableLayer
	SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
}, payload gopacket.Payload) ([]byte, error) {
	var ip gopacket.NetworkLayer = &layers.IPv6{SrcIP: f.Src.Addr().AsSlice(), DstIP: f.Dst.Addr().AsSlice()}
	if f.Src.Addr().Is4() {
		ip = &layers.IPv4{SrcIP: f.Src.Addr().AsSlice(), DstIP: f.Dst.Addr().AsSlice()}
	}
	if err := h.SetNetworkLayerForChecksum(ip); err != nil {
		return nil, err
	}
	return serialize(h, payload)
}

func (f *Frame) network(body []byte) ([]byte, error) {
	if f.Src.Addr().Is4() {
		return f.ipv4(body)
	}
	return f.ipv6(body)
}

func (f *Frame) ipv4(body []byte) ([]byte, error) {
	if len(f.Options)%4 != 0 || len(f.Options) > 40 || f.Offset%8 != 0 {
		return nil, errors.New("options are 0 to 40 bytes in words, offsets multiples of 8")
	}
	flags := layers.IPv4Flag(0)
	if f.DF {
		flags |= layers.IPv4DontFragment
	}
	if f.More {
		flags |= layers.IPv4MoreFragments
	}
	b, err := serialize(&layers.IPv4{Version: 4, TOS: f.TOS, Id: uint16(f.ID), Flags: flags, FragOffset: f.Offset / 8, TTL: f.TTL,
		Protocol: layers.IPProtocol(f.Protocol), SrcIP: f.Src.Addr().AsSlice(), DstIP: f.Dst.Addr().AsSlice()})
	if err != nil {
		return nil, err
	}
	b = append(b, f.Options...)
	b[0] = 0x40 | byte(len(b)/4)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(body)))
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], gopacket.FoldChecksum(gopacket.ComputeChecksum(b, 0)))
	return append(b, body...), nil
}

func (f *Frame) ipv6(body []byte) ([]byte, error) {
	all := append([]Extension(nil), f.Extensions...)
	if f.Offset != 0 || f.More {
		word := f.Offset
		if f.More {
			word |= 1
		}
		all = append(all, Extension{Type: frag, Body: binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, word), f.ID)})
	}
	next := f.Protocol
	for i := len(all) - 1; i >= 0; i-- {
		head, err := all[i].bytes(next)
		if err != nil {
			return nil, err
		}
		body, next = append(head, body...), all[i].Type
	}
	return serialize(&layers.IPv6{Version: 6, TrafficClass: f.TOS, HopLimit: f.TTL, NextHeader: layers.IPProtocol(next),
		SrcIP: f.Src.Addr().AsSlice(), DstIP: f.Dst.Addr().AsSlice()}, gopacket.Payload(body))
}

// bytes is the extension header in front of protocol next.
func (e *Extension) bytes(next uint8) ([]byte, error) {
	n := len(e.Body) + 2
	if n%8 != 0 {
		return nil, fmt.Errorf("extension header %d has %d bytes, want a multiple of 8", e.Type, n)
	}
	length := n/8 - 1
	if e.Type == ah { // counts in words, less 2 (RFC 4302, section 2.2)
		length = n/4 - 2
	}
	return append([]byte{next, byte(length)}, e.Body...), nil
}
