package packet_test

import (
	"bytes"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// segment is a TCP segment in either family with sequence numbers 1000 and 2000.
func segment(family int, flags uint8, payload string) frame.Frame {
	if family == 4 {
		return frame.TCP(client4, server4, flags, payload)
	}
	return frame.TCP(client6, server6, flags, payload)
}

func TestReset(t *testing.T) {
	for _, c := range []struct {
		name     string
		flags    uint8
		payload  string
		seq, ack uint32
		want     uint8
	}{
		{"a SYN is acknowledged as one byte", packet.FlagSYN, "", 0, 1001, packet.FlagRST | packet.FlagACK},
		{"a SYN with payload is acknowledged with it", packet.FlagSYN, "hello", 0, 1006, packet.FlagRST | packet.FlagACK},
		{"a FIN counts as one byte", packet.FlagFIN, "", 0, 1001, packet.FlagRST | packet.FlagACK},
		{"nothing counts as nothing", 0, "", 0, 1000, packet.FlagRST | packet.FlagACK},
		{"an ACK gets the sequence number that it asks for", packet.FlagACK, "hello", 2000, 0, packet.FlagRST},
		{"so does a SYN-ACK", packet.FlagSYN | packet.FlagACK, "", 2000, 0, packet.FlagRST},
		{"and a FIN-ACK", packet.FlagFIN | packet.FlagACK, "", 2000, 0, packet.FlagRST},
	} {
		for _, family := range []int{4, 6} {
			in := segment(family, c.flags, c.payload)
			want := segment(family, c.want, "").Swapped()
			want.Seq, want.Ack, want.Window = c.seq, c.ack, 0
			expect(t, c.name, in, want, packet.WriteReset)
		}
	}
}

// expect answers in and compares with want, into a new buffer and in place.
func expect(t *testing.T, name string, in, want frame.Frame, write func([]byte, *packet.Packet) int) {
	t.Helper()
	b := in.Bytes()
	var p packet.Packet
	p.Parse(b)
	dst := make([]byte, packet.MaxAnswer)
	out := dst[:write(dst, &p)]
	if err := frame.Check(out); err != nil {
		t.Errorf("%s: %v\n% x", name, err, out)
		return
	}
	got, err := frame.Decode(out)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if diff := frame.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	if !bytes.Equal(out[:p.L3], b[:p.L3]) {
		t.Errorf("%s: link header % x, want % x", name, out[:p.L3], b[:p.L3])
	}
	place := b[:cap(b)]
	if n := write(place, &p); !bytes.Equal(place[:n], out) {
		t.Errorf("%s: written in place it differs", name)
	}
}

func TestResetOfSegmentWithOptions(t *testing.T) {
	in := chain(tcp6(), destination)
	want := tcp6().Swapped()
	want.Flags, want.Seq, want.Ack, want.Window, want.Payload = packet.FlagRST|packet.FlagACK, 0, 1006, 0, nil
	expect(t, "extension headers are not answered in kind", in, want, packet.WriteReset)

	in = tcp4()
	in.Options, in.Padding, in.Flags, in.Tagged, in.VLAN = []byte{1, 1, 1, 0}, 20, packet.FlagSYN, true, 7
	want = tcp4().Swapped()
	want.Flags, want.Seq, want.Ack, want.Window, want.Payload, want.Tagged, want.VLAN = packet.FlagRST|packet.FlagACK, 0, 1006, 0, nil, true, 7
	expect(t, "options and padding do not count as payload; the tag stays", in, want, packet.WriteReset)
}

func TestUnreachable(t *testing.T) {
	long := string(bytes.Repeat([]byte("0123456789"), 140))
	for _, c := range []struct {
		name  string
		in    frame.Frame
		quote int // bytes of in from its IP header on
	}{
		{"a datagram over IPv4", udp4(), 33},
		{"a datagram over IPv6", udp6(), 53},
		{"a TCP segment", tcp4(), 45},
		{"an SCTP packet", frame.SCTP(client6, server6, "chunk..."), 60},
		{"a long datagram over IPv4 is quoted up to 576 bytes in all", frame.UDP(client4, server4, long), 576 - 28},
		{"a long datagram over IPv6 is quoted up to 1280 bytes in all", frame.UDP(client6, server6, long), 1280 - 48},
		{"a first fragment", decoded(with(frame.UDP(client4, server4, "12345678"), func(f *frame.Frame) { f.More = true })), 36},
		{"padding is not quoted", decoded(with(udp4(), func(f *frame.Frame) { f.Padding = 20 })), 33},
		{"extension headers are quoted", chain(udp6(), destination), 61},
		{"the tag stays", decoded(with(udp6(), func(f *frame.Frame) { f.Tagged, f.VLAN = true, 7 })), 53},
	} {
		src, dst, typ, code := c.in.Dst.Addr().String(), c.in.Src.Addr().String(), uint8(3), uint8(3)
		if c.in.Src.Addr().Is6() {
			typ, code = 1, 4
		}
		l3 := 14
		if c.in.Tagged {
			l3 = 18
		}
		want := frame.ICMP(src, dst, typ, code, string(c.in.Bytes()[l3:l3+c.quote]))
		want.TOS, want.DF, want.Tagged, want.VLAN = 0xc0, c.in.Src.Addr().Is4(), c.in.Tagged, c.in.VLAN
		expect(t, c.name, c.in, want, packet.WriteUnreachable)
	}
}

// TestRouterErrors: what a router says, in its own name.
func TestRouterErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     frame.Frame
		router string
		write  func([]byte, *packet.Packet, *packet.Addr) int
		typ    uint8
		code   uint8
		rest   uint32
	}{
		{"fragmentation needed names the MTU", tcp4(), "10.0.0.9", tooBig(1400), 3, 4, 1400},
		{"packet too big names the MTU", tcp6(), "fd00::9", tooBig(1400), 2, 0, 1400},
		{"an MTU beyond what 16 bits hold", tcp4(), "10.0.0.9", tooBig(70000), 3, 4, 65535},
		{"an MTU beyond what 16 bits hold, IPv6", tcp6(), "fd00::9", tooBig(70000), 2, 0, 70000},
		{"time exceeded", udp4(), "10.0.0.9", packet.WriteTimeExceeded, 11, 0, 0},
		{"hop limit exceeded", udp6(), "fd00::9", packet.WriteTimeExceeded, 3, 0, 0},
		{"an address that is link-local in its first octet only", tcp4(), "169.253.0.9", tooBig(1400), 3, 4, 1400},
		{"an address that is link-local in its second octet only", tcp4(), "10.254.0.9", tooBig(1400), 3, 4, 1400},
		{"an address that is link-local in its first octet only, IPv6", tcp6(), "fec0::9", tooBig(1400), 2, 0, 1400},
		{"an address that is link-local in its second octet only, IPv6", tcp6(), "fd80::9", tooBig(1400), 2, 0, 1400},
		{"a destination on one link may be spoken for", udp4().To("169.254.20.10:53"), "169.254.20.10", packet.WriteTimeExceeded, 11, 0, 0},
	} {
		router := addr(c.router)
		want := frame.ICMP(c.router, c.in.Src.Addr().String(), c.typ, c.code, string(c.in.Bytes()[14:]))
		want.TOS, want.DF, want.ICMPRest = 0xc0, c.in.Src.Addr().Is4(), c.rest
		expect(t, c.name, c.in, want, func(dst []byte, p *packet.Packet) int { return c.write(dst, p, &router) })
	}
	for _, c := range []struct{ name, router string }{
		{"a router without address", "0.0.0.0"}, {"a group", "224.0.0.1"}, {"a link-local address", "169.254.1.1"},
		{"the other family", "fd00::9"}, {"a link-local address, IPv6", "fe80::1"}, {"no address, IPv6", "::"}, {"a group, IPv6", "ff02::1"}, {"the other family, IPv6", "10.0.0.9"},
	} {
		in := tcp4()
		if strings.HasSuffix(c.name, "IPv6") {
			in = tcp6()
		}
		var p packet.Packet
		p.Parse(in.Bytes())
		router := addr(c.router)
		dst := make([]byte, packet.MaxAnswer)
		if n := packet.WriteTooBig(dst, &p, &router, 1400) + packet.WriteTimeExceeded(dst, &p, &router); n != 0 {
			t.Errorf("%s speaks: %d bytes", c.name, n)
		}
	}
}

func tooBig(mtu uint32) func([]byte, *packet.Packet, *packet.Addr) int {
	return func(dst []byte, p *packet.Packet, src *packet.Addr) int { return packet.WriteTooBig(dst, p, src, mtu) }
}

func decoded(b []byte) frame.Frame {
	f, err := frame.Decode(b)
	if err != nil {
		panic(err)
	}
	return f
}

func TestNoAnswer(t *testing.T) {
	exceeded := func(dst []byte, p *packet.Packet) int { return packet.WriteTimeExceeded(dst, p, &p.Dst) }
	both := []func([]byte, *packet.Packet) int{packet.WriteReset, packet.WriteUnreachable, exceeded}
	for _, c := range []struct {
		name    string
		in      frame.Frame
		writers []func([]byte, *packet.Packet) int
	}{
		{"a reset is not reset", segment(4, packet.FlagRST, ""), both[:1]},
		{"nor one with ACK", segment(6, packet.FlagRST|packet.FlagACK, ""), both[:1]},
		{"a datagram is not reset", udp4(), both[:1]},
		{"a fragment is not reset, its length being unknown", decoded(with(segment(4, packet.FlagSYN, "12345678"), func(f *frame.Frame) { f.More = true })), both[:1]},
		{"an ICMP message", frame.ICMP("10.0.0.1", "10.0.0.2", 8, 0, ""), both},
		{"an ICMPv6 message", frame.ICMP("fd00::1", "fd00::2", 128, 0, ""), both},
		{"a later fragment", decoded(with(frame.Raw("10.0.0.1", "10.0.0.2", 17, "x"), func(f *frame.Frame) { f.Offset = 8 })), both},
		{"a packet from nobody", segment(4, packet.FlagSYN, "").From("0.0.0.0:1"), both},
		{"a packet from nobody, IPv6", segment(6, packet.FlagSYN, "").From("[::]:1"), both},
		{"a packet from a group", segment(4, packet.FlagSYN, "").From("224.0.0.1:1"), both},
		{"a packet from a group, IPv6", segment(6, packet.FlagSYN, "").From("[ff02::1]:1"), both},
		{"a packet from everybody", segment(4, packet.FlagSYN, "").From("255.255.255.255:1"), both},
		{"a packet to a group", segment(4, packet.FlagSYN, "").To("239.1.1.1:1"), both},
		{"a packet to a group, IPv6", segment(6, packet.FlagSYN, "").To("[ff02::1]:1"), both},
	} {
		var p packet.Packet
		if o := p.Parse(c.in.Bytes()); o != packet.OK && o != packet.NoPorts {
			t.Fatalf("%s: outcome %v", c.name, o)
		}
		for i, write := range c.writers {
			if n := write(make([]byte, packet.MaxAnswer), &p); n != 0 {
				t.Errorf("%s: answer %d of %d bytes, want none", c.name, i, n)
			}
		}
	}
}

func TestAnswerNeedsRoom(t *testing.T) {
	for name, write := range map[string]func([]byte, *packet.Packet) int{"reset": packet.WriteReset, "unreachable": packet.WriteUnreachable} {
		for _, f := range []frame.Frame{tcp4(), tcp6()} {
			var p packet.Packet
			p.Parse(f.Bytes())
			n := write(make([]byte, packet.MaxAnswer), &p)
			if got := write(make([]byte, n), &p); got != n {
				t.Errorf("%s: %d bytes into just enough room, want %d", name, got, n)
			}
			dst := make([]byte, n-1)
			if got := write(dst, &p); got != 0 || !bytes.Equal(dst, make([]byte, n-1)) {
				t.Errorf("%s: %d bytes into too little room, want 0 and nothing written", name, got)
			}
		}
	}
}

func TestAnswersDoNotAllocate(t *testing.T) {
	var p, q packet.Packet
	p.Parse(tcp4().Bytes())
	q.Parse(udp6().Bytes())
	dst := make([]byte, packet.MaxAnswer)
	if n := testing.AllocsPerRun(100, func() {
		packet.WriteReset(dst, &p)
		packet.WriteUnreachable(dst, &q)
		packet.WriteInject(dst, packet.Direct, 3)
		packet.ReadPunt(dst)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
