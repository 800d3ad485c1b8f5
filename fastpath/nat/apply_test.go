package nat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// family holds the actors of one address family.
type family struct{ client, vip, backend, node string }

var families = map[string]family{
	"IPv4": {"10.244.1.2:40000", "10.96.0.10:53", "10.244.2.3:5353", "172.30.0.11:61000"},
	"IPv6": {"[fd00:10:244:1::2]:40000", "[fd00:10:96::a]:53", "[fd00:10:244:2::3]:5353", "[fd30::11]:61000"},
}

var protocols = map[string]struct {
	number uint8
	make   func(src, dst, payload string) frame.Frame
}{
	"TCP":  {tcp, func(s, d, p string) frame.Frame { return frame.TCP(s, d, packet.FlagACK|packet.FlagPSH, p) }},
	"UDP":  {udp, frame.UDP},
	"SCTP": {sctp, frame.SCTP},
}

// shapes are what surrounds or fills a packet.
var shapes = map[string]struct {
	only   string // family or protocol it makes sense for
	change func(*frame.Frame)
}{
	"plain":                  {"", func(*frame.Frame) {}},
	"empty":                  {"", func(f *frame.Frame) { f.Payload = nil }},
	"odd length":             {"", func(f *frame.Frame) { f.Payload = []byte("odd") }},
	"long":                   {"", func(f *frame.Frame) { f.Payload = bytes.Repeat([]byte{0xff, 0x01, 0x80}, 480) }},
	"tagged":                 {"", func(f *frame.Frame) { f.Tagged, f.VLAN = true, 77 }},
	"padded":                 {"", func(f *frame.Frame) { f.Payload, f.Padding = nil, 18 }},
	"options":                {"IPv4", func(f *frame.Frame) { f.Options = []byte{1, 1, 1, 1, 7, 3, 4, 0} }},
	"extension header":       {"IPv6", func(f *frame.Frame) { f.Extensions = []frame.Extension{{Type: 60, Body: make([]byte, 6)}} }},
	"without UDP checksum":   {"IPv4 UDP", func(f *frame.Frame) { f.NoChecksum = true }},
	"smallest TTL and class": {"", func(f *frame.Frame) { f.TTL, f.TOS = 1, 0xb8 }},
}

// pair is both directions of a translation.
func (t *Translation) pair() (fwd, rev conntrack.Flow) {
	t.Make(&fwd, &rev)
	return fwd, rev
}

func (f family) translations(protocol uint8) map[string]Translation {
	kept := translation(protocol, f.client, f.vip, f.backend)
	masked := kept
	masked.Source, masked.SourcePort = endpoint(f.node)
	self := netip.AddrPortFrom(netip.MustParseAddrPort(f.client).Addr(), 5353).String()
	samePorts := translation(protocol, f.client, f.vip, netip.AddrPortFrom(netip.MustParseAddrPort(f.backend).Addr(), 53).String())
	return map[string]Translation{
		"to a backend":                  kept,
		"with the source rewritten":     masked,
		"to itself":                     translation(protocol, f.client, f.vip, self),
		"to a backend on the same port": samePorts,
	}
}

// Every packet comes out as described, its checksums right by the judgement of code that
// shares nothing with this package, and its reply comes back to the client.
func TestApply(t *testing.T) {
	for familyName, fam := range families {
		for protocolName, protocol := range protocols {
			for shapeName, shape := range shapes {
				if !strings.Contains(familyName+" "+protocolName, shape.only) {
					continue
				}
				for trName, tr := range fam.translations(protocol.number) {
					name := fmt.Sprintf("%s %s %s %s", familyName, protocolName, shapeName, trName)
					fwd, rev := tr.pair()
					in := protocol.make(fam.client, fam.vip, "payload!")
					shape.change(&in)
					expectApplied(t, name, in, &fwd.Rewrite)
					reply := protocol.make(pairOf(&rev.Tuple, true), pairOf(&rev.Tuple, false), "answer")
					shape.change(&reply)
					expectApplied(t, name+", reply", reply, &rev.Rewrite)
				}
			}
		}
	}
}

// pairOf is the source or destination of a tuple as ADDR:PORT.
func pairOf(t *conntrack.Tuple, source bool) string {
	if source {
		return netip.AddrPortFrom(t.Src.Netip(), t.SrcPort).String()
	}
	return netip.AddrPortFrom(t.Dst.Netip(), t.DstPort).String()
}

func expectApplied(t *testing.T, name string, in frame.Frame, r *conntrack.Rewrite) {
	t.Helper()
	b := in.Bytes()
	var p packet.Packet
	if outcome := p.Parse(b); outcome != packet.OK {
		t.Fatalf("%s: parse is %v", name, outcome)
	}
	if !Apply(&p, r) {
		t.Errorf("%s: was refused", name)
		return
	}
	want := in
	want.Src = netip.AddrPortFrom(r.Src.Netip(), r.SrcPort)
	want.Dst = netip.AddrPortFrom(r.Dst.Netip(), r.DstPort)
	got, err := frame.Decode(b)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if diff := frame.Diff(want, got); diff != "" {
		t.Errorf("%s: frame differs (-want +got):\n%s", name, diff)
	}
	if err := frame.Check(b); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	again := packet.Packet{}
	again.Parse(b)
	if p.Src != again.Src || p.Dst != again.Dst || p.SrcPort != again.SrcPort || p.DstPort != again.DstPort {
		t.Errorf("%s: the parsed packet says %v:%d to %v:%d, not what the frame holds", name, p.Src, p.SrcPort, p.Dst, p.DstPort)
	}
}

// A checksum that comes out as zero is written as ffff: zero would say that there is none.
func TestApplyUDPChecksumNeverBecomesZero(t *testing.T) {
	for name, fam := range families {
		tr := translation(udp, fam.client, fam.vip, fam.backend)
		fwd, _ := tr.pair()
		met := false
		for v := range 1 << 16 {
			in := frame.UDP(fam.client, fam.vip, string([]byte{byte(v >> 8), byte(v)}))
			b := in.Bytes()
			var p packet.Packet
			p.Parse(b)
			Apply(&p, &fwd.Rewrite)
			switch binary.BigEndian.Uint16(b[p.L4+udpCheck:]) {
			case 0:
				t.Fatalf("%s: payload %04x: checksum became zero", name, v)
			case 0xffff:
				met = true
				if err := frame.Check(b); err != nil {
					t.Errorf("%s: payload %04x: %v", name, v, err)
				}
			}
			if met {
				break
			}
		}
		if !met {
			t.Errorf("%s: no payload led to a checksum of zero, which one of 65536 must", name)
		}
	}
}

// A packet that was damaged on its way stays damaged.
func TestApplyKeepsDamage(t *testing.T) {
	for familyName, fam := range families {
		for protocolName, protocol := range protocols {
			tr := translation(protocol.number, fam.client, fam.vip, fam.backend)
			fwd, _ := tr.pair()
			b := protocol.make(fam.client, fam.vip, "payload!").Bytes()
			b[len(b)-1] ^= 0x10
			var p packet.Packet
			p.Parse(b)
			if !Apply(&p, &fwd.Rewrite) {
				t.Fatalf("%s %s: was refused", familyName, protocolName)
			}
			if err := frame.Check(b); err == nil {
				t.Errorf("%s %s: the damage was covered up", familyName, protocolName)
			}
			b[len(b)-1] ^= 0x10
			if err := frame.Check(b); err != nil {
				t.Errorf("%s %s: the checksum is wrong by something else: %v", familyName, protocolName, err)
			}
		}
	}
}

func TestApplyFragments(t *testing.T) {
	for familyName, fam := range families {
		for _, c := range []struct {
			because  string
			protocol string
			change   func(*frame.Frame)
			applied  bool
			ports    bool // are rewritten
		}{
			{"a first fragment has the ports, and the checksum of the whole", "UDP", func(f *frame.Frame) { f.More = true }, true, true},
			{"a later fragment has addresses only", "UDP", func(f *frame.Frame) { f.Offset = 800 }, true, false},
			{"a later fragment of TCP", "UDP", func(f *frame.Frame) { f.Protocol, f.Offset, f.More = tcp, 800, true }, true, false},
			{"the checksum of a fragmented SCTP packet covers what is not there", "SCTP", func(f *frame.Frame) { f.More = true }, false, false},
		} {
			tr := translation(protocols[c.protocol].number, fam.client, fam.vip, fam.backend)
			fwd, _ := tr.pair()
			in := protocols[c.protocol].make(fam.client, fam.vip, strings.Repeat("x", 64))
			in.ID = 99
			c.change(&in)
			if in.Offset != 0 {
				in.Src, in.Dst = netip.AddrPortFrom(in.Src.Addr(), 0), netip.AddrPortFrom(in.Dst.Addr(), 0)
			}
			b := in.Bytes()
			before := bytes.Clone(b)
			var p packet.Packet
			p.Parse(b)
			if got := Apply(&p, &fwd.Rewrite); got != c.applied {
				t.Errorf("%s: %s: applied is %v, want %v", familyName, c.because, got, c.applied)
			}
			if !c.applied {
				if !bytes.Equal(before, b) {
					t.Errorf("%s: %s: refused but changed", familyName, c.because)
				}
				continue
			}
			if err := frame.Check(b); err != nil {
				t.Errorf("%s: %s: %v", familyName, c.because, err)
			}
			want := in
			want.Src = netip.AddrPortFrom(fwd.Rewrite.Src.Netip(), 0)
			want.Dst = netip.AddrPortFrom(fwd.Rewrite.Dst.Netip(), 0)
			if c.ports {
				want.Src = netip.AddrPortFrom(want.Src.Addr(), fwd.Rewrite.SrcPort)
				want.Dst = netip.AddrPortFrom(want.Dst.Addr(), fwd.Rewrite.DstPort)
			}
			got, err := frame.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := frame.Diff(want, got); diff != "" {
				t.Errorf("%s: %s: frame differs (-want +got):\n%s", familyName, c.because, diff)
			}
		}
	}
}

// The checksum of a first fragment covers the whole packet, of which only a part is here:
// it changes by what changed.
func TestApplyFirstFragmentChecksum(t *testing.T) {
	for name, fam := range families {
		tr := translation(udp, fam.client, fam.vip, fam.backend)
		fwd, _ := tr.pair()
		whole := frame.UDP(fam.client, fam.vip, strings.Repeat("x", 64))
		part := whole
		part.More, part.ID, part.Payload = true, 5, whole.Payload[:16]
		var w, f packet.Packet
		w.Parse(whole.Bytes())
		f.Parse(part.Bytes())
		copy(f.Frame[f.L4:f.L4+udpLen], w.Frame[w.L4:w.L4+udpLen])
		if !Apply(&w, &fwd.Rewrite) || !Apply(&f, &fwd.Rewrite) {
			t.Fatalf("%s: was refused", name)
		}
		if got, want := f.Frame[f.L4:f.L4+udpLen], w.Frame[w.L4:w.L4+udpLen]; !bytes.Equal(got, want) {
			t.Errorf("%s: header of the fragment is %x, of the whole %x", name, got, want)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	v4, v6 := families["IPv4"], families["IPv6"]
	to4, to6 := translation(udp, v4.client, v4.vip, v4.backend), translation(udp, v6.client, v6.vip, v6.backend)
	fwd4, _ := to4.pair()
	fwd6, _ := to6.pair()
	for _, c := range []struct {
		because string
		in      frame.Frame
		rewrite *conntrack.Rewrite
		change  func(*packet.Packet)
	}{
		{"IPv4 cannot become IPv6", frame.UDP(v4.client, v4.vip, ""), &fwd6.Rewrite, nil},
		{"IPv6 cannot become IPv4", frame.UDP(v6.client, v6.vip, ""), &fwd4.Rewrite, nil},
		{"ICMP has no ports", frame.ICMP("10.0.0.1", "10.0.0.2", 8, 0, "x"), &fwd4.Rewrite, nil},
		{"what was not parsed has no family", frame.UDP(v4.client, v4.vip, ""), &fwd4.Rewrite, func(p *packet.Packet) { *p = packet.Packet{Frame: p.Frame} }},
		{"a header that ends behind the frame", frame.UDP(v4.client, v4.vip, ""), &fwd4.Rewrite, func(p *packet.Packet) { p.End++ }},
		{"a transport header that ends behind the packet", frame.TCP(v4.client, v4.vip, 0, ""), &fwd4.Rewrite, func(p *packet.Packet) { p.End-- }},
		{"a transport header inside the IP header", frame.UDP(v4.client, v4.vip, ""), &fwd4.Rewrite, func(p *packet.Packet) { p.L4 = p.L3 }},
		{"no transport header, yet no fragment", frame.UDP(v4.client, v4.vip, ""), &fwd4.Rewrite, func(p *packet.Packet) { p.L4 = 0 }},
	} {
		b := c.in.Bytes()
		before := bytes.Clone(b)
		var p packet.Packet
		p.Parse(b)
		if c.change != nil {
			c.change(&p)
		}
		was := p
		if Apply(&p, c.rewrite) {
			t.Errorf("%s: was applied", c.because)
		}
		if !bytes.Equal(b, before) || p.Src != was.Src || p.DstPort != was.DstPort {
			t.Errorf("%s: refused but changed", c.because)
		}
	}
}

func TestDecrementTTL(t *testing.T) {
	for name, fam := range families {
		for ttl := range 256 {
			in := frame.UDP(fam.client, fam.vip, "x")
			in.TTL = uint8(ttl)
			if ttl == 0 && in.TTL != 0 {
				t.Fatal("the builder has changed the TTL")
			}
			b := in.Bytes()
			before := bytes.Clone(b)
			var p packet.Packet
			p.Parse(b)
			got := DecrementTTL(&p)
			if want := ttl > 1; got != want {
				t.Errorf("%s: TTL %d: %v, want %v", name, ttl, got, want)
			}
			if !got {
				if !bytes.Equal(before, b) || int(p.TTL) != ttl {
					t.Errorf("%s: TTL %d: refused but changed", name, ttl)
				}
				continue
			}
			if err := frame.Check(b); err != nil {
				t.Errorf("%s: TTL %d: %v", name, ttl, err)
			}
			want := in
			want.TTL--
			after, err := frame.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := frame.Diff(want, after); diff != "" || int(p.TTL) != ttl-1 {
				t.Errorf("%s: TTL %d became %d in the packet; frame differs:\n%s", name, ttl, p.TTL, diff)
			}
		}
	}
	var none packet.Packet
	none.TTL = 64
	if DecrementTTL(&none) {
		t.Error("a packet without a frame was changed")
	}
}

func TestNothingAllocates(t *testing.T) {
	fam := families["IPv6"]
	table := newTable(t, 1024)
	p := Ports{First: 40000, Last: 40063}
	r := seeded(1)
	ids := []uint32{1, 2, 3}
	for protocolName, protocol := range protocols {
		b := protocol.make(fam.client, fam.vip, "payload!").Bytes()
		tr := translation(protocol.number, fam.client, fam.vip, fam.backend)
		fwd, rev := tr.pair()
		var pkt packet.Packet
		for name, do := range map[string]func(){
			"Apply":        func() { pkt.Parse(b); Apply(&pkt, &fwd.Rewrite) },
			"DecrementTTL": func() { pkt.Parse(b); DecrementTTL(&pkt) },
			"Pick":         func() { Pick(r, ids) },
			"Open": func() {
				tr.SourcePort = 0
				p.Open(table, r, &tr, &fwd, &rev, 1)
				table.Delete(&fwd)
			},
		} {
			if n := testing.AllocsPerRun(100, do); n != 0 {
				t.Errorf("%s %s: %v allocations", protocolName, name, n)
			}
		}
	}
}
