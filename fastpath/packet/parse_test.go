package packet_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

const (
	client4, server4 = "10.0.0.1:1000", "10.0.0.2:80"
	client6, server6 = "[fd00::1]:1000", "[fd00::2]:80"
)

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

// with is the frame of f after a change to its description.
func with(f frame.Frame, change func(*frame.Frame)) []byte {
	change(&f)
	return f.Bytes()
}

// patched is b after a change to its bytes.
func patched(b []byte, change func([]byte)) []byte {
	change(b)
	return b
}

// put16 is a patch of one big-endian word.
func put16(at int, v uint16) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint16(b[at:], v) }
}

func tcp4() frame.Frame { return frame.TCP(client4, server4, packet.FlagACK|packet.FlagPSH, "hello") }
func tcp6() frame.Frame { return frame.TCP(client6, server6, packet.FlagSYN, "hello") }
func udp4() frame.Frame { return frame.UDP(client4, server4, "hello") }
func udp6() frame.Frame { return frame.UDP(client6, server6, "hello") }

func chain(f frame.Frame, e ...frame.Extension) frame.Frame { f.Extensions = e; return f }

var (
	hopByHop    = frame.Extension{Type: 0, Body: []byte{5, 2, 0, 0, 1, 0}} // router alert, PadN
	routing     = frame.Extension{Type: 43, Body: []byte{4, 0, 0, 0, 0, 0}}
	segments    = frame.Extension{Type: 43, Body: []byte{4, 1, 0, 0, 0, 0}}
	destination = frame.Extension{Type: 60, Body: []byte{1, 4, 0, 0, 0, 0}}
	ah          = frame.Extension{Type: 51, Body: make([]byte, 22)}
	atomic      = frame.Extension{Type: 44, Body: []byte{0, 0, 0, 0, 0, 9}}
)

func TestParseReads(t *testing.T) {
	src4, dst4, src6, dst6 := addr("10.0.0.1"), addr("10.0.0.2"), addr("fd00::1"), addr("fd00::2")
	for _, c := range []struct {
		name    string
		frame   []byte
		outcome packet.Outcome
		want    packet.Packet
	}{
		{"a TCP segment over IPv4", tcp4().Bytes(), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 59, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 6, TTL: 64, Flags: packet.FlagACK | packet.FlagPSH}},
		{"a TCP segment over IPv6", tcp6().Bytes(), packet.OK,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 54, End: 79, SrcPort: 1000, DstPort: 80, Family: 6, Protocol: 6, TTL: 64, Flags: packet.FlagSYN}},
		{"a UDP datagram over IPv4", udp4().Bytes(), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 47, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64}},
		{"a UDP datagram over IPv6", udp6().Bytes(), packet.OK,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 54, End: 67, SrcPort: 1000, DstPort: 80, Family: 6, Protocol: 17, TTL: 64}},
		{"an SCTP packet", frame.SCTP(client4, server4, "chunk...").Bytes(), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 54, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 132, TTL: 64}},
		{"an ICMP message: type and code, no ports", frame.ICMP("10.0.0.1", "10.0.0.2", 3, 4, "").Bytes(), packet.NoPorts,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 42, Family: 4, Protocol: 1, TTL: 64, ICMPType: 3, ICMPCode: 4}},
		{"an ICMPv6 message", frame.ICMP("fd00::1", "fd00::2", 1, 4, "").Bytes(), packet.NoPorts,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 54, End: 62, Family: 6, Protocol: 58, TTL: 64, ICMPType: 1, ICMPCode: 4}},
		{"ICMP's number in IPv6 means nothing", frame.Raw("fd00::1", "fd00::2", 1, "x").Bytes(), packet.NoPorts,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 54, End: 63, Family: 6, Protocol: 1, TTL: 64}},
		{"a protocol without ports", frame.Raw("10.0.0.1", "10.0.0.2", 47, "").Bytes(), packet.NoPorts,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 34, Family: 4, Protocol: 47, TTL: 64}},
		{"one VLAN tag shifts all by four; priority bits are no part of the id", patched(with(udp4(), func(f *frame.Frame) { f.Tagged, f.VLAN = true, 42 }), put16(14, 0xe000|42)), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 18, L4: 38, End: 51, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64, Tagged: true, VLAN: 42}},
		{"IPv4 options move the transport header", with(udp4(), func(f *frame.Frame) { f.Options = make([]byte, 40) }), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 74, End: 87, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64, Options: true}},
		{"padding lies behind End", with(udp4(), func(f *frame.Frame) { f.Padding = 13 }), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 47, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64}},
		{"a first IPv4 fragment has ports", with(udp4(), func(f *frame.Frame) { f.More, f.ID = true, 77 }), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 47, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64, ID: 77, Fragment: true, More: true}},
		{"a first fragment holds less than the UDP length says", patched(with(udp4(), func(f *frame.Frame) { f.More = true }), put16(38, 9000)), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 47, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64, Fragment: true, More: true}},
		{"a later IPv4 fragment has no transport header, however much its bytes look like one", with(frame.Raw("10.0.0.1", "10.0.0.2", 6, "looks like a header, no?"), func(f *frame.Frame) { f.Offset, f.More, f.ID = 1480, true, 77 }), packet.NoPorts,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, End: 58, Family: 4, Protocol: 6, TTL: 64, ID: 77, Fragment: true, Offset: 1480, More: true}},
		{"a last fragment may be a single byte", with(frame.Raw("10.0.0.1", "10.0.0.2", 17, "x"), func(f *frame.Frame) { f.Offset = 65512 }), packet.NoPorts,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, End: 35, Family: 4, Protocol: 17, TTL: 64, Fragment: true, Offset: 65512}},
		{"each extension header is walked over", chain(tcp6(), hopByHop, destination, routing, ah, destination).Bytes(), packet.OK,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 110, End: 135, SrcPort: 1000, DstPort: 80, Family: 6, Protocol: 6, TTL: 64, Flags: packet.FlagSYN, Options: true}},
		{"a whole packet in a fragment header is no fragment", chain(udp6(), atomic).Bytes(), packet.OK,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 62, End: 75, SrcPort: 1000, DstPort: 80, Family: 6, Protocol: 17, TTL: 64, Options: true}},
		{"a first IPv6 fragment has ports", with(frame.UDP(client6, server6, "12345678"), func(f *frame.Frame) { f.More, f.ID = true, 7777777 }), packet.OK,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 62, End: 78, SrcPort: 1000, DstPort: 80, Family: 6, Protocol: 17, TTL: 64, Options: true, ID: 7777777, Fragment: true, More: true}},
		{"a later IPv6 fragment ends the walk, even at another extension header", with(frame.Raw("fd00::1", "fd00::2", 60, "rest"), func(f *frame.Frame) { f.Offset, f.ID = 1448, 7 }), packet.NoPorts,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, End: 66, Family: 6, Protocol: 60, TTL: 64, Options: true, ID: 7, Fragment: true, Offset: 1448}},
		{"a routing header with segments left: the transport header is not for this destination", chain(tcp6(), destination, segments).Bytes(), packet.NoPorts,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 62, End: 95, Family: 6, Protocol: 43, TTL: 64, Options: true}},
		{"encrypted payload ends the walk", frame.Raw("fd00::1", "fd00::2", 50, "12345678").Bytes(), packet.NoPorts,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 54, End: 62, Family: 6, Protocol: 50, TTL: 64}},
		{"no next header, no payload", frame.Raw("fd00::1", "fd00::2", 59, "").Bytes(), packet.NoPorts,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 54, End: 54, Family: 6, Protocol: 59, TTL: 64}},
		{"as many extension headers as are walked", chain(udp6(), destination, destination, destination, destination, destination, destination, destination, destination).Bytes(), packet.OK,
			packet.Packet{Src: src6, Dst: dst6, L3: 14, L4: 118, End: 131, SrcPort: 1000, DstPort: 80, Family: 6, Protocol: 17, TTL: 64, Options: true}},
		{"a UDP datagram that ends before its packet", patched(udp4().Bytes(), put16(38, 8)), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 47, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64}},
		{"a UDP datagram without checksum over IPv4", with(udp4(), func(f *frame.Frame) { f.NoChecksum = true }), packet.OK,
			packet.Packet{Src: src4, Dst: dst4, L3: 14, L4: 34, End: 47, SrcPort: 1000, DstPort: 80, Family: 4, Protocol: 17, TTL: 64}},
		{"ARP", patched(udp4().Bytes(), put16(12, 0x0806)), packet.NotIP, packet.Packet{L3: 14}},
		{"two VLAN tags", patched(with(udp4(), func(f *frame.Frame) { f.Tagged = true }), put16(16, 0x8100)), packet.NotIP, packet.Packet{L3: 18, Tagged: true}},
		{"a provider's tag", patched(udp4().Bytes(), put16(12, 0x88a8)), packet.NotIP, packet.Packet{L3: 14}},
	} {
		c.want.Frame = c.frame
		p := dirty()
		if got := p.Parse(c.frame); got != c.outcome {
			t.Errorf("%s: outcome %v, want %v", c.name, got, c.outcome)
		}
		if diff := cmp.Diff(&c.want, p); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// dirty is a packet full of what an earlier frame left behind.
func dirty() *packet.Packet {
	p := new(packet.Packet)
	p.Parse(with(frame.TCP(client6, server6, 0xff, "12345678"), func(f *frame.Frame) {
		f.Tagged, f.VLAN, f.More, f.ID, f.Extensions = true, 4095, true, 9, []frame.Extension{destination}
	}))
	p.ICMPType, p.ICMPCode, p.Offset = 1, 2, 3
	return p
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
		want  packet.Outcome
	}{
		{"nothing", nil, packet.Truncated},
		{"half an Ethernet header", make([]byte, 13), packet.Truncated},
		{"a VLAN tag cut off", with(udp4(), func(f *frame.Frame) { f.Tagged = true })[:17], packet.Truncated},

		{"no IPv4 header", udp4().Bytes()[:14], packet.Truncated},
		{"an IPv4 header cut off", udp4().Bytes()[:33], packet.Truncated},
		{"IPv4 options cut off", with(udp4(), func(f *frame.Frame) { f.Options = make([]byte, 40) })[:73], packet.Truncated},
		{"version 5", patched(udp4().Bytes(), func(b []byte) { b[14] = 0x55 }), packet.Invalid},
		{"an IPv4 header of 16 bytes", patched(udp4().Bytes(), func(b []byte) { b[14] = 0x44 }), packet.Invalid},
		{"an IPv4 length below its header's", patched(udp4().Bytes(), put16(16, 19)), packet.Invalid},
		{"an IPv4 length beyond the frame", patched(udp4().Bytes(), put16(16, 34)), packet.Invalid},
		{"an IPv4 length of 0, as of a segment not yet cut", patched(udp4().Bytes(), put16(16, 0)), packet.Invalid},
		{"a fragment beyond 65,535 bytes", with(frame.Raw("10.0.0.1", "10.0.0.2", 17, "12345678"), func(f *frame.Frame) { f.Offset = 65528 }), packet.Invalid},

		{"a TCP header cut off by the IP length", patched(tcp4().Bytes(), put16(16, 39)), packet.Truncated},
		{"a TCP data offset below 5", patched(tcp4().Bytes(), func(b []byte) { b[46] = 0x40 }), packet.Invalid},
		{"a TCP data offset beyond the packet", patched(tcp4().Bytes(), func(b []byte) { b[46] = 0xf0 }), packet.Truncated},
		{"a UDP header cut off", patched(udp4().Bytes(), put16(16, 27)), packet.Truncated},
		{"a UDP length below its header's", patched(udp4().Bytes(), put16(38, 7)), packet.Invalid},
		{"a UDP length beyond the packet", patched(udp4().Bytes(), put16(38, 14)), packet.Invalid},
		{"a UDP datagram without checksum over IPv6, which has no other", with(udp6(), func(f *frame.Frame) { f.NoChecksum = true }), packet.Invalid},
		{"a UDP length that only the padding could fill", patched(with(udp4(), func(f *frame.Frame) { f.Padding = 10 }), put16(38, 14)), packet.Invalid},
		{"an SCTP header cut off", patched(frame.SCTP(client4, server4, "").Bytes(), put16(16, 31)), packet.Truncated},
		{"an ICMP header cut off", patched(frame.ICMP("10.0.0.1", "10.0.0.2", 8, 0, "").Bytes(), put16(16, 27)), packet.Truncated},
		{"a first fragment too small for its transport header", patched(with(tcp4(), func(f *frame.Frame) { f.More = true }), put16(16, 28)), packet.Truncated},

		{"an IPv6 header cut off", udp6().Bytes()[:53], packet.Truncated},
		{"version 7", patched(udp6().Bytes(), func(b []byte) { b[14] = 0x70 }), packet.Invalid},
		{"an IPv6 length beyond the frame", patched(udp6().Bytes(), put16(18, 14)), packet.Invalid},
		{"an IPv6 packet from a v4-mapped address", patched(udp6().Bytes(), func(b []byte) { a := addr("10.0.0.1"); copy(b[22:], a[:]) }), packet.Invalid},
		{"an IPv6 packet to a v4-mapped address", patched(udp6().Bytes(), func(b []byte) { a := addr("10.0.0.1"); copy(b[38:], a[:]) }), packet.Invalid},
		{"a jumbogram", patched(chain(udp6(), hopByHop).Bytes(), put16(18, 0)), packet.Invalid},
		{"a jumbo option in a packet that has a length", chain(udp6(), frame.Extension{Type: 0, Body: []byte{0xc2, 4, 0, 1, 0, 0}}).Bytes(), packet.Invalid},
		{"a hop-by-hop option past its header", chain(udp6(), frame.Extension{Type: 0, Body: []byte{1, 5, 0, 0, 0, 0}}).Bytes(), packet.Invalid},
		{"a hop-by-hop option without length", chain(udp6(), frame.Extension{Type: 0, Body: []byte{1, 3, 0, 0, 0, 5}}).Bytes(), packet.Invalid},
		{"hop-by-hop options behind another header", chain(udp6(), destination, hopByHop).Bytes(), packet.Invalid},
		{"an extension header cut off", patched(chain(udp6(), destination).Bytes(), put16(18, 7)), packet.Truncated},
		{"an extension header beyond the packet", patched(chain(udp6(), destination).Bytes(), func(b []byte) { b[55] = 200 }), packet.Truncated},
		{"an authentication header shorter than its fields", patched(chain(udp6(), ah).Bytes(), func(b []byte) { b[55] = 0 }), packet.Invalid},
		{"two fragment headers that both count", chain(with6(func(f *frame.Frame) { f.More = true }), frame.Extension{Type: 44, Body: []byte{0, 1, 0, 0, 0, 9}}).Bytes(), packet.Invalid},
		{"an IPv6 fragment in the middle whose length is no multiple of 8", with(udp6(), func(f *frame.Frame) { f.More = true }), packet.Invalid},
		{"an IPv6 fragment beyond 65,535 bytes", with(frame.Raw("fd00::1", "fd00::2", 17, "12345678"), func(f *frame.Frame) { f.Offset = 65528 }), packet.Invalid},
		{"one extension header more than are walked", chain(udp6(), destination, destination, destination, destination, destination, destination, destination, destination, destination).Bytes(), packet.Invalid},
		{"an IPv6 packet that ends behind its headers", patched(chain(udp6(), destination).Bytes(), put16(18, 8)), packet.Truncated},
	} {
		p := dirty()
		if got := p.Parse(c.frame); got != c.want {
			t.Errorf("%s: outcome %v, want %v", c.name, got, c.want)
		}
		if len(p.Frame) != len(c.frame) {
			t.Errorf("%s: the frame of before is still held", c.name)
		}
		if p.SrcPort != 0 || p.DstPort != 0 {
			t.Errorf("%s: ports %d and %d, want none", c.name, p.SrcPort, p.DstPort)
		}
	}
}

func with6(change func(*frame.Frame)) frame.Frame {
	f := frame.UDP(client6, server6, "12345678")
	change(&f)
	return f
}

// TestParseCutAtEveryByte cuts good frames short, as a copy that went wrong would: none of
// them is taken for whole.
func TestParseCutAtEveryByte(t *testing.T) {
	for _, f := range []frame.Frame{tcp4(), tcp6(), chain(tcp6(), hopByHop, routing, ah, atomic)} {
		b := f.Bytes()
		for n := range len(b) {
			if got := new(packet.Packet).Parse(b[:n:n]); got != packet.Truncated && got != packet.Invalid {
				t.Errorf("%d bytes of %d: outcome %v", n, len(b), got)
			}
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	frames := [][]byte{tcp4().Bytes(), chain(udp6(), hopByHop, routing).Bytes(), {1, 2, 3}}
	p := new(packet.Packet)
	if n := testing.AllocsPerRun(100, func() {
		for _, b := range frames {
			p.Parse(b)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestAddr(t *testing.T) {
	for _, s := range []string{"0.0.0.0", "10.0.0.1", "255.255.255.255", "::", "::1", "fd00::1"} {
		a := addr(s)
		if a.String() != s || a.Is4() != netip.MustParseAddr(s).Is4() {
			t.Errorf("%s: comes back as %s, IPv4 %v", s, a, a.Is4())
		}
	}
	if got := packet.Addr4([4]byte{10, 0, 0, 1}); got != addr("10.0.0.1") {
		t.Errorf("Addr4 = %v", got)
	}
	if got := packet.AddrFrom(netip.Addr{}); got != addr("::") {
		t.Errorf("invalid address = %v, want ::", got)
	}
	if a := addr("1.2.3.4"); a.Word(3) != 0x04030201 || a.Word(2) != 0xffff0000 {
		t.Errorf("words %08x and %08x, want ffff0000 and 04030201", a.Word(2), a.Word(3))
	}
}
