package packet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// quoting is the frame of an ICMP error of the family of f, which it quotes from its IP
// header on.
func quoting(f []byte, typ4, typ6, code uint8) []byte { return quotingTo(f, typ4, typ6, code, len(f)) }

func quotingTo(f []byte, typ4, typ6, code uint8, n int) []byte {
	if f[14]>>4 == 4 {
		return frame.ICMP("10.9.9.9", "10.0.0.1", typ4, code, string(f[14:n])).Bytes()
	}
	return frame.ICMP("fd00::99", "fd00::1", typ6, code, string(f[14:n])).Bytes()
}

// TestQuote: what is read of the packet that an error quotes.
func TestQuote(t *testing.T) {
	src4, dst4, src6, dst6 := addr("10.0.0.1"), addr("10.0.0.2"), addr("fd00::1"), addr("fd00::2")
	q4 := func(proto uint8, l4, end, transport int) packet.Quote {
		return packet.Quote{Src: src4, Dst: dst4, SrcPort: 1000, DstPort: 80, L3: 42, L4: l4, End: end, Transport: transport, Family: 4, Protocol: proto}
	}
	q6 := func(proto uint8, l4, end, transport int) packet.Quote {
		return packet.Quote{Src: src6, Dst: dst6, SrcPort: 1000, DstPort: 80, L3: 62, L4: l4, End: end, Transport: transport, Family: 6, Protocol: proto}
	}
	extended := func(f frame.Frame, typ, words uint8, at int) []byte {
		b := quoting(append(f.Bytes(), make([]byte, 200)...), typ, typ, 1)
		b[at] = words
		return b
	}
	for _, c := range []struct {
		name  string
		frame []byte
		want  packet.Quote
	}{
		{"TCP", quoting(tcp4().Bytes(), 3, 1, 0), q4(6, 62, 87, 25)},
		{"TCP over IPv6", quoting(tcp6().Bytes(), 3, 1, 0), q6(6, 102, 127, 25)},
		{"UDP", quoting(udp4().Bytes(), 11, 3, 0), q4(17, 62, 75, 13)},
		{"UDP over IPv6", quoting(udp6().Bytes(), 11, 3, 0), q6(17, 102, 115, 13)},
		{"SCTP", quoting(frame.SCTP(client4, server4, "").Bytes(), 12, 4, 0), q4(132, 62, 74, 12)},
		{"cut off behind the ports", quotingTo(tcp4().Bytes(), 3, 1, 4, 14+24), q4(6, 62, 66, 25)},
		{"cut off behind the ports, IPv6", quotingTo(tcp6().Bytes(), 3, 2, 0, 14+44), q6(6, 102, 106, 25)},
		{"IPv4 options", quoting(with(udp4(), func(f *frame.Frame) { f.Options = make([]byte, 40) }), 3, 1, 0), q4(17, 102, 115, 13)},
		{"extension headers", quoting(chain(udp6(), hopByHop, routing, destination).Bytes(), 3, 1, 0), q6(17, 126, 139, 13)},
		{"as many extension headers as are walked", quoting(chain(udp6(), destination, destination, destination, destination, destination, destination, destination, destination).Bytes(), 3, 1, 0), q6(17, 166, 179, 13)},
		{"a first fragment: its transport is longer than it", quoting(with(frame.UDP(client4, server4, "12345678"), func(f *frame.Frame) { f.More = true }), 11, 3, 1), q4(17, 62, 78, 0)},
		{"a first fragment of IPv6", quoting(with(frame.UDP(client6, server6, "12345678"), func(f *frame.Frame) { f.More = true }), 11, 3, 1), q6(17, 110, 126, 0)},
		{"a length of its own that is too short to be true", quoting(patched(udp4().Bytes(), put16(16, 3)), 3, 1, 0), q4(17, 62, 75, 0)},
		{"a length beyond the quotation, which is the rule", quoting(patched(udp4().Bytes(), put16(16, 1500)), 3, 1, 0), q4(17, 62, 75, 1480)},
		{"a length field that says where extensions begin", extended(udp4(), 3, 32, 39), q4(17, 62, 170, 13)},
		{"a length field of time exceeded", extended(udp4(), 11, 32, 39), q4(17, 62, 170, 13)},
		{"a length field of parameter problem", extended(udp4(), 12, 32, 39), q4(17, 62, 170, 13)},
		{"a length field of unreachable, IPv6", extended(udp6(), 1, 16, 58), q6(17, 102, 190, 13)},
		{"a length field of time exceeded, IPv6", extended(udp6(), 3, 16, 58), q6(17, 102, 190, 13)},
		{"a length field beyond the message says nothing", extended(udp4(), 3, 255, 39), q4(17, 62, 275, 13)},
		{"a source quench has no length field", extended(udp4(), 4, 32, 39), q4(17, 62, 275, 13)},
		{"a redirect has the router's address there", extended(udp4(), 5, 32, 39), q4(17, 62, 275, 13)},
		{"packet too big has the MTU there", extended(udp6(), 2, 16, 58), q6(17, 102, 315, 13)},
		{"parameter problem of IPv6 has a pointer there", extended(udp6(), 4, 16, 58), q6(17, 102, 315, 13)},
	} {
		var p packet.Packet
		if o := p.Parse(c.frame); o != packet.NoPorts || !p.IsError() {
			t.Fatalf("%s: outcome %v, error %v", c.name, o, p.IsError())
		}
		q := packet.Quote{L4: 9, SrcPort: 9, Transport: 9}
		if o := q.Parse(&p); o != packet.OK {
			t.Errorf("%s: outcome %v, want OK", c.name, o)
		}
		if d := cmp.Diff(c.want, q); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
	}
}

func TestQuoteRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
		want  packet.Outcome
	}{
		{"nothing quoted", quotingTo(udp4().Bytes(), 3, 1, 0, 14), packet.Truncated},
		{"an IPv4 header cut off", quotingTo(udp4().Bytes(), 3, 1, 0, 14+19), packet.Truncated},
		{"an IPv6 header cut off", quotingTo(udp6().Bytes(), 3, 1, 0, 14+39), packet.Truncated},
		{"the ports cut off", quotingTo(udp4().Bytes(), 3, 1, 0, 14+23), packet.NoPorts},
		{"IPv4 options cut off", quotingTo(with(udp4(), func(f *frame.Frame) { f.Options = make([]byte, 40) }), 3, 1, 0, 14+40), packet.NoPorts},
		{"an extension header cut off", quotingTo(chain(udp6(), destination).Bytes(), 3, 1, 0, 14+44), packet.Truncated},
		{"an extension header beyond the quotation", quoting(patched(chain(udp6(), destination).Bytes(), func(b []byte) { b[55] = 200 }), 3, 1, 0), packet.Truncated},
		{"IPv6 in an error of IPv4", frame.ICMP("10.9.9.9", "10.0.0.1", 3, 0, string(udp6().Bytes()[14:])).Bytes(), packet.Invalid},
		{"IPv4 in an error of IPv6", frame.ICMP("fd00::99", "fd00::1", 1, 0, string(append(udp4().Bytes()[14:], make([]byte, 20)...))).Bytes(), packet.Invalid},
		{"a header of 16 bytes", quoting(patched(udp4().Bytes(), func(b []byte) { b[14] = 0x44 }), 3, 1, 0), packet.Invalid},
		{"IPv6 from a v4-mapped address", quoting(patched(udp6().Bytes(), func(b []byte) { a := addr("10.0.0.1"); copy(b[22:], a[:]) }), 3, 1, 0), packet.Invalid},
		{"another protocol", quoting(frame.Raw("10.0.0.1", "10.0.0.2", 47, "12345678").Bytes(), 3, 1, 0), packet.NoPorts},
		{"an ICMP message", quoting(frame.ICMP("10.0.0.1", "10.0.0.2", 8, 0, "ping").Bytes(), 3, 1, 0), packet.NoPorts},
		{"a later fragment", quoting(with(frame.Raw("10.0.0.1", "10.0.0.2", 17, "12345678"), func(f *frame.Frame) { f.Offset = 8 }), 11, 3, 1), packet.NoPorts},
		{"a later fragment of IPv6", quoting(with(frame.Raw("fd00::1", "fd00::2", 17, "12345678"), func(f *frame.Frame) { f.Offset = 8 }), 11, 3, 1), packet.NoPorts},
		{"a waypoint for its destination", quoting(chain(udp6(), frame.Extension{Type: 43, Body: []byte{4, 1, 0, 0, 0, 0}}).Bytes(), 3, 1, 0), packet.NoPorts},
		{"more extension headers than are walked", quoting(chain(udp6(), destination, destination, destination, destination, destination, destination, destination, destination, destination).Bytes(), 3, 1, 0), packet.NoPorts},
	} {
		var p packet.Packet
		p.Parse(c.frame)
		var q packet.Quote
		if o := q.Parse(&p); o != c.want {
			t.Errorf("%s: outcome %v, want %v", c.name, o, c.want)
		}
	}
}

// TestICMPKinds: which messages quote a packet, and which of them are translated.
func TestICMPKinds(t *testing.T) {
	type kinds struct{ Error, Advice, Echo bool }
	for typ := range 256 {
		want4, want6 := kinds{}, kinds{}
		switch typ {
		case 3, 11, 12:
			want4.Error = true
		case 4, 5:
			want4.Error, want4.Advice = true, true
		case 0, 8:
			want4.Echo = true
		}
		switch typ {
		case 1, 2, 3, 4:
			want6.Error = true
		case 128, 129:
			want6.Echo = true
		}
		for _, c := range []struct {
			src, dst string
			want     kinds
		}{{"10.0.0.1", "10.0.0.2", want4}, {"fd00::1", "fd00::2", want6}} {
			var p packet.Packet
			p.Parse(frame.ICMP(c.src, c.dst, uint8(typ), 0, "payload").Bytes())
			if got := (kinds{p.IsError(), p.IsAdvice(), p.IsEcho()}); got != c.want || !p.IsICMP() {
				t.Errorf("type %d from %s: %+v, ICMP %v; want %+v", typ, c.src, got, p.IsICMP(), c.want)
			}
		}
	}
	for name, f := range map[string]frame.Frame{
		"TCP": tcp4(), "ICMP in IPv6": frame.Raw("fd00::1", "fd00::2", 1, "\x03\x03      "), "ICMPv6 in IPv4": frame.Raw("10.0.0.1", "10.0.0.2", 58, "\x01\x04      "),
	} {
		var p packet.Packet
		p.Parse(f.Bytes())
		if p.IsICMP() || p.IsError() || p.IsEcho() || p.IsAdvice() {
			t.Errorf("%s is taken for ICMP", name)
		}
	}
}

// FuzzQuote: whatever an error quotes, offsets lie in it and in order.
func FuzzQuote(f *testing.F) {
	for _, b := range [][]byte{
		quoting(tcp4().Bytes(), 3, 1, 0), quoting(tcp6().Bytes(), 3, 2, 0), quotingTo(tcp6().Bytes(), 3, 2, 0, 60),
		quoting(chain(udp6(), hopByHop, routing, ah, destination).Bytes(), 3, 3, 0),
		quoting(with(udp4(), func(f *frame.Frame) { f.Options = make([]byte, 40) }), 12, 4, 0),
		quoting(with(frame.UDP(client6, server6, "12345678"), func(f *frame.Frame) { f.More = true }), 11, 3, 1),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p packet.Packet
		if p.Parse(b) != packet.NoPorts || !p.IsError() {
			return
		}
		var q packet.Quote
		switch o := q.Parse(&p); {
		case o != packet.OK && o != packet.NoPorts && o != packet.Truncated && o != packet.Invalid:
			t.Fatalf("outcome %d", o)
		case o == packet.OK && (q.L3 != p.L4+packet.ICMPLen || q.L4 < q.L3+20 || q.L4+4 > q.End || q.End > p.End || q.Transport < 0):
			t.Fatalf("offsets L3 %d, L4 %d, end %d of %d, transport %d", q.L3, q.L4, q.End, p.End, q.Transport)
		case o == packet.OK && (q.Family != p.Family || q.Src.Is4() != (q.Family == 4) || q.Dst.Is4() != (q.Family == 4)):
			t.Fatalf("family %d, from %s to %s", q.Family, q.Src, q.Dst)
		}
	})
}

func TestQuoteDoesNotAllocate(t *testing.T) {
	var p packet.Packet
	var q packet.Quote
	p.Parse(quoting(chain(udp6(), hopByHop, routing).Bytes(), 3, 1, 0))
	if n := testing.AllocsPerRun(100, func() { q.Parse(&p) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
