package packet_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// cutAll cuts a frame the way a worker does and returns the frames.
func cutAll(b []byte, p *packet.Packet, c *packet.Cutter, mtu uint32, id uint16) (all [][]byte) {
	all = append(all, slices.Clone(b[:c.Begin(p, mtu, id)]))
	for c.Any() {
		room := make([]byte, 2*packet.MaxCut)
		all = append(all, room[:c.Next(room)])
	}
	return all
}

// A router's cut, held to what a sender's own would be: frame.Cut shares nothing with it.
func TestCut(t *testing.T) {
	long := strings.Repeat("0123456789", 300)
	for _, c := range []struct {
		sentence string
		mtu      uint32
		with     func(*frame.Frame)
	}{
		{"a datagram", 1400, nil},
		{"with another payload that fills the last fragment", 1020, func(f *frame.Frame) { f.Payload = f.Payload[:1992] }},
		{"one byte too long", 1500, func(f *frame.Frame) { f.Payload = f.Payload[:1473] }},
		{"as finely as IPv4 allows", 68, nil},
		{"for a way whose MTU leaves no multiple of eight", 1303, nil},
		{"with padding behind the packet, which is in no fragment", 1400, func(f *frame.Frame) { f.Padding = 9 }},
		{"with options, all of which are copied", 1400, func(f *frame.Frame) { f.Options = []byte{0x94, 4, 0, 0, 0x88, 4, 1, 2} }},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			f := frame.UDP(client4, server4, long)
			if c.with != nil {
				c.with(&f)
			}
			b := f.Bytes()
			want := frame.Cut(b[:len(b)-f.Padding], 77, int(c.mtu))
			var p packet.Packet
			if o := p.Parse(b); o != packet.OK || !p.MayCut(c.mtu) {
				t.Fatalf("outcome %v, may be cut %v", o, p.MayCut(c.mtu))
			}
			var k packet.Cutter
			got := cutAll(b, &p, &k, c.mtu, 77)
			if len(got) != len(want) {
				t.Fatalf("%d fragments, want %d", len(got), len(want))
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("fragment %d is\n%x, want\n%x", i, got[i], want[i])
				}
			}
			if !p.Fragment || !p.More || p.Offset != 0 || p.ID != 77 || p.End != len(got[0]) {
				t.Errorf("the packet in hand is not its first fragment: %+v", p)
			}
		})
	}
}

// A fragment that is cut again stays part of its datagram.
func TestCutFragment(t *testing.T) {
	whole := frame.UDP(client4, server4, strings.Repeat("0123456789", 500)).Bytes()
	var parts []frame.Part
	var k packet.Cutter
	for _, b := range frame.Cut(whole, 99, 1500) {
		var p packet.Packet
		p.Parse(b)
		if !p.MayCut(700) {
			t.Fatal("may not be cut")
		}
		for _, piece := range cutAll(b, &p, &k, 700, 1) {
			if err := frame.Check(piece); err != nil || len(piece) > 714 {
				t.Errorf("a fragment of %d bytes: %v", len(piece), err)
			}
			part, err := frame.ReadPart(piece)
			if err != nil || part.Of.ID != 99 {
				t.Fatalf("%v, identification %d: want that of the datagram", err, part.Of.ID)
			}
			parts = append(parts, part)
		}
	}
	joined, err := frame.Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	if err := frame.Check(joined); err != nil || !bytes.Equal(joined[34:], whole[34:]) {
		t.Errorf("what comes together is another datagram: %v", err)
	}
}

// RFC 791: each option says whether it is to be in every fragment.
func TestCutOptions(t *testing.T) {
	for _, c := range []struct {
		sentence     string
		first, later []byte
	}{
		{"record route is in the first one only", []byte{7, 7, 4, 0, 0, 0, 0, 0}, []byte{1, 1, 1, 1, 1, 1, 1, 0}},
		{"router alert is in all", []byte{0x94, 4, 0, 0}, []byte{0x94, 4, 0, 0}},
		{"each by itself", []byte{1, 68, 4, 5, 0, 0x94, 4, 0, 0, 0, 0, 0}, []byte{1, 1, 1, 1, 1, 0x94, 4, 0, 0, 0, 0, 0}},
		{"behind the end is nothing", []byte{0x94, 4, 0, 0, 0, 0x94, 4, 0}, []byte{0x94, 4, 0, 0, 0, 0, 0, 0}},
		{"one that is longer than the header is none", []byte{0x94, 9, 0, 0}, []byte{0, 0, 0, 0}},
		{"one without a length is none", []byte{1, 1, 1, 0x94}, []byte{1, 1, 1, 0}},
		{"one of no length is none", []byte{0x94, 0, 0, 0}, []byte{0, 0, 0, 0}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			f := frame.UDP(client4, server4, strings.Repeat("x", 1000))
			f.Options = c.first
			b := f.Bytes()
			var p packet.Packet
			p.Parse(b)
			var k packet.Cutter
			for i, piece := range cutAll(b, &p, &k, 500, 7) {
				want := c.later
				if i == 0 {
					want = c.first
				}
				if got := piece[34 : 34+len(want)]; !bytes.Equal(got, want) {
					t.Errorf("fragment %d has options %x, want %x", i, got, want)
				}
				if err := frame.Check(piece); err != nil && i > 0 { // what came may be odd
					t.Errorf("fragment %d: %v", i, err)
				}
			}
		})
	}
}

func TestMayCut(t *testing.T) {
	for _, c := range []struct {
		sentence string
		frame    []byte
		mtu      uint32
		want     bool
	}{
		{"a datagram", udp4().Bytes(), 68, true},
		{"whose sender forbids it", with(udp4(), func(f *frame.Frame) { f.DF = true }), 68, false},
		{"IPv6", udp6().Bytes(), 68, false},
		{"for a way that takes headers only", udp4().Bytes(), 27, false},
		{"for a way that takes eight bytes of payload", udp4().Bytes(), 28, true},
		{"for a way that takes less than the options", with(udp4(), func(f *frame.Frame) { f.Options = make([]byte, 40) }), 67, false},
		{"longer than any frame of the trunk", frame.UDP(client4, server4, strings.Repeat("x", 5000)).Bytes(), 1500, false},
	} {
		var p packet.Packet
		p.Parse(c.frame)
		if got := p.MayCut(c.mtu); got != c.want {
			t.Errorf("%s: %v, want %v", c.sentence, got, c.want)
		}
	}
	var p packet.Packet
	b := udp4().Bytes()
	if p.ParseCut(b[:len(b)-2]); p.MayCut(68) {
		t.Error("a packet of which only the beginning is here may be cut")
	}
}

// What does not fit where it is to go is lost by itself, and what is left can be given up.
func TestCutterRest(t *testing.T) {
	b := frame.UDP(client4, server4, strings.Repeat("x", 3000)).Bytes()
	var p packet.Packet
	p.Parse(b)
	var k packet.Cutter
	if frames, bytes := k.Rest(); k.Any() || frames != 0 || bytes != 0 || k.Next(b) != 0 {
		t.Error("the zero value has something left")
	}
	k.Begin(&p, 1020, 1) // 1000 + 1000 + 1000 + 8
	if frames, bytes := k.Rest(); frames != 3 || bytes != 2008+3*34 {
		t.Errorf("%d frames of %d bytes are left, want 3 of 2110", frames, bytes)
	}
	if n := k.Next(make([]byte, 100)); n != 1034 {
		t.Errorf("a fragment without room has %d bytes, want 1034", n)
	}
	if frames, _ := k.Rest(); frames != 2 {
		t.Errorf("%d frames are left behind the one that was lost, want 2", frames)
	}
	if k.Forget(); k.Any() {
		t.Error("something is left of what was given up")
	}
	if n := testing.AllocsPerRun(100, func() { q := p; k.Begin(&q, 68, 1); k.Next(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCut cuts arbitrary packets: the fragments fit, are parsed as what they are, and put
// together are the packet.
func FuzzCut(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b, uint16(40))
	}
	f.Add(frame.UDP(client4, server4, strings.Repeat("0123456789", 300)).Bytes(), uint16(1400))
	f.Fuzz(func(t *testing.T, b []byte, mtu uint16) {
		b = bytes.Clone(b)
		var p packet.Packet
		if o := p.Parse(b); o != packet.OK && o != packet.NoPorts || !p.MayCut(uint32(mtu)) || p.End-p.L3 <= int(mtu) {
			return
		}
		was := p
		header := 4 * int(b[p.L3]&15)
		payload := bytes.Clone(b[p.L3+header : p.End])
		var k packet.Cutter
		at := int(p.Offset)
		all := cutAll(b, &p, &k, uint32(mtu), 5)
		var joined []byte
		for i, piece := range all {
			ip := piece[was.L3:]
			word := binary.BigEndian.Uint16(ip[6:])
			more := was.More || i < len(all)-1
			if len(ip) > int(mtu) || int(binary.BigEndian.Uint16(ip[2:])) != len(ip) || int(word&0x1fff)*8 != at || (word&0x2000 != 0) != more {
				t.Fatalf("fragment %d of %d at %d: %x", i, len(all), at, ip[:header])
			}
			at += len(ip) - header
			joined = append(joined, ip[header:]...)
		}
		if !bytes.Equal(joined, payload) {
			t.Fatal("the fragments are not the packet")
		}
	})
}

// FuzzPart looks for where the bytes of arbitrary fragments begin.
func FuzzPart(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b)
	}
	twice := chain(udp6(), destination, atomic)
	twice.More, twice.ID, twice.Payload = true, 7, make([]byte, 16)
	f.Add(twice.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:len(b):len(b)]
		var p packet.Packet
		o := p.Parse(b)
		if !p.Fragment {
			return
		}
		from, next := p.Part()
		if from < p.L3+20 || from > len(b) || p.Family == 6 && (from < p.L3+48 || from > p.End) {
			t.Fatalf("outcome %v: bytes begin at %d of %d, end at %d", o, from, len(b), p.End)
		}
		if p.Family == 4 {
			if next != b[p.L3+9] || from != p.L3+4*int(b[p.L3]&15) {
				t.Fatalf("bytes of protocol %d from %d on", next, from)
			}
			return
		}
		at := p.FragmentHeader()
		if at != from-8 || b[at] != next {
			t.Fatalf("a fragment header at %d, bytes from %d", at, from)
		}
		if got := binary.BigEndian.Uint16(b[at+2:]) &^ 7; got != p.Offset {
			t.Fatalf("offset %d in the header that was found, %d in the packet", got, p.Offset)
		}
	})
}
