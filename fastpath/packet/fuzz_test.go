package packet_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// seeds is one frame of each shape.
func seeds() (all [][]byte) {
	for _, f := range []frame.Frame{
		tcp4(), tcp6(), udp4(), udp6(), frame.SCTP(client4, server4, "chunk..."), frame.SCTP(client6, server6, ""),
		frame.ICMP("10.0.0.1", "10.0.0.2", 3, 3, "quote"), frame.ICMP("fd00::1", "fd00::2", 1, 4, "quote"),
		frame.Raw("10.0.0.1", "10.0.0.2", 47, "gre"), chain(tcp6(), hopByHop, destination, routing, ah, atomic),
		chain(udp6(), segments), segment(4, packet.FlagSYN, ""), segment(6, packet.FlagFIN, "x"),
	} {
		all = append(all, f.Bytes())
	}
	return append(all,
		with(udp4(), func(f *frame.Frame) { f.Tagged, f.VLAN, f.Padding = true, 42, 5 }),
		with(tcp4(), func(f *frame.Frame) { f.Options = []byte{7, 3, 0, 0} }),
		with(frame.UDP(client4, server4, "12345678"), func(f *frame.Frame) { f.More, f.ID = true, 7 }),
		with(frame.Raw("10.0.0.1", "10.0.0.2", 17, "x"), func(f *frame.Frame) { f.Offset = 8 }),
		with(frame.UDP(client6, server6, "12345678"), func(f *frame.Frame) { f.More, f.ID = true, 7 }),
		with(frame.Raw("fd00::1", "fd00::2", 17, "x"), func(f *frame.Frame) { f.Offset = 8 }),
		patched(udp4().Bytes(), put16(12, 0x0806)),
	)
}

// FuzzParse parses arbitrary frames. Whatever they are, offsets stay in range and order,
// nothing of an earlier frame remains, padding does not count and the frame is not touched.
// What gopacket reads as well it must read the same way.
func FuzzParse(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:len(b):len(b)] // a slice expression past the end now panics
		before := bytes.Clone(b)
		p, q := new(packet.Packet), dirty()
		outcome := p.Parse(b)
		if got := q.Parse(b); got != outcome || !cmp.Equal(p, q) {
			t.Fatalf("depends on the frame of before: %s", cmp.Diff(p, q))
		}
		if !bytes.Equal(b, before) {
			t.Fatal("frame was written")
		}
		checkOffsets(t, p, outcome)
		if outcome != packet.OK && outcome != packet.NoPorts {
			return
		}
		if got := q.Parse(b[:p.End]); got != outcome {
			t.Fatalf("outcome %v without padding, %v with", got, outcome)
		}
		if want, err := frame.Decode(b); err == nil {
			compare(t, p, outcome, &want)
		}
	})
}

func checkOffsets(t *testing.T, p *packet.Packet, outcome packet.Outcome) {
	t.Helper()
	n := len(p.Frame)
	if p.L3 > n || p.L4 > n || p.End > n || p.L3 < 0 || p.L4 < 0 || p.End < 0 {
		t.Fatalf("outcome %v: offsets %d, %d, %d outside of %d bytes", outcome, p.L3, p.L4, p.End, n)
	}
	least := map[uint8]int{6: packet.TCPLen, 17: packet.UDPLen, 132: packet.SCTPLen}[p.Protocol]
	switch {
	case outcome == packet.OK && (p.L3 >= p.L4 || p.L4+least > p.End || least == 0):
		t.Fatalf("offsets %d, %d, %d do not hold a header of protocol %d", p.L3, p.L4, p.End, p.Protocol)
	case outcome == packet.NoPorts && p.L4 != 0 && (p.L3 >= p.L4 || p.L4 > p.End):
		t.Fatalf("offsets %d, %d, %d are out of order", p.L3, p.L4, p.End)
	case outcome == packet.NoPorts && (p.L4 == 0) != (p.Offset != 0):
		t.Fatalf("transport header at %d in a fragment of offset %d", p.L4, p.Offset)
	}
	if outcome != packet.OK && (p.SrcPort != 0 || p.DstPort != 0) {
		t.Fatalf("outcome %v with ports", outcome)
	}
}

// compare holds a parsed packet to what gopacket read.
func compare(t *testing.T, p *packet.Packet, outcome packet.Outcome, want *frame.Frame) {
	t.Helper()
	type fields struct {
		Src, Dst                   netip.Addr
		Protocol, TTL, Flags       uint8
		Tagged, More               bool
		VLAN, Offset, Source, Dest uint16
		ICMPType, ICMPCode         uint8
		Padding                    int
	}
	got := fields{p.Src.Netip(), p.Dst.Netip(), p.Protocol, p.TTL, p.Flags, p.Tagged, p.More, p.VLAN, p.Offset,
		p.SrcPort, p.DstPort, p.ICMPType, p.ICMPCode, len(p.Frame) - p.End}
	read := fields{want.Src.Addr(), want.Dst.Addr(), want.Protocol, want.TTL, want.Flags, want.Tagged, want.More, want.VLAN, want.Offset,
		want.Src.Port(), want.Dst.Port(), want.ICMPType, want.ICMPCode, want.Padding}
	if p.Protocol == 43 { // segments left: the walk ends there, gopacket's goes on
		read.Protocol, read.Flags, read.Source, read.Dest, read.ICMPType, read.ICMPCode = 43, 0, 0, 0, 0, 0
		read.More, read.Offset = got.More, got.Offset
	}
	if other := map[uint8]uint8{4: packet.ProtocolICMPv6, 6: packet.ProtocolICMP}[p.Family]; p.Protocol == other {
		read.ICMPType, read.ICMPCode = 0, 0 // the protocol is not of this family
	}
	if got != read {
		t.Fatalf("outcome %v (-gopacket +packet):\n%s", outcome, cmp.Diff(read, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })))
	}
}

// TestParseTakesEveryWellFormedFrame builds random frames: none is refused, and each is
// read as it was described.
func TestParseTakesEveryWellFormedFrame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		f := random(rng)
		b := f.Bytes()
		p := new(packet.Packet)
		outcome := p.Parse(b)
		if ports := f.Offset == 0 && (f.Protocol == 6 || f.Protocol == 17 || f.Protocol == 132); ports != (outcome == packet.OK) || !ports && outcome != packet.NoPorts {
			t.Fatalf("outcome %v of %+v", outcome, f)
		}
		if f.Offset != 0 {
			f.Src, f.Dst = netip.AddrPortFrom(f.Src.Addr(), 0), netip.AddrPortFrom(f.Dst.Addr(), 0)
		}
		compare(t, p, outcome, &f)
	}
}

func random(rng *rand.Rand) frame.Frame {
	src, dst := client4, server4
	if rng.IntN(2) == 0 {
		src, dst = client6, server6
	}
	payload := string(make([]byte, 8*rng.IntN(20)))
	var f frame.Frame
	switch rng.IntN(4) {
	case 0:
		f = frame.TCP(src, dst, uint8(rng.Uint32()), payload)
	case 1:
		f = frame.UDP(src, dst, payload)
	case 2:
		f = frame.SCTP(src, dst, payload)
	case 3:
		f = frame.ICMP(netip.MustParseAddrPort(src).Addr().String(), netip.MustParseAddrPort(dst).Addr().String(), uint8(rng.Uint32()), uint8(rng.Uint32()), payload)
	}
	f.TTL, f.TOS, f.Padding = uint8(rng.Uint32()), uint8(rng.Uint32()), rng.IntN(30)
	if rng.IntN(3) == 0 {
		f.Tagged, f.VLAN = true, uint16(rng.IntN(4096))
	}
	if f.Src.Addr().Is4() {
		f.Options = make([]byte, 4*rng.IntN(11))
	} else {
		for range rng.IntN(4) {
			f.Extensions = append(f.Extensions, []frame.Extension{destination, routing, ah, atomic}[rng.IntN(4)])
		}
	}
	if rng.IntN(5) == 0 && f.Src.Addr().Is4() {
		f.Offset, f.More, f.ID, f.Flags, f.ICMPType, f.ICMPCode = uint16(8*rng.IntN(1000)+8), rng.IntN(2) == 0, 7, 0, 0, 0
	}
	return f
}

// FuzzAnswer answers arbitrary frames. Every answer is well formed with right checksums by
// independent code, goes back to where the frame came from, and is the same in place.
func FuzzAnswer(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, write := range []func([]byte, *packet.Packet) int{packet.WriteReset, packet.WriteUnreachable} {
			b := append(make([]byte, 0, len(b)+packet.MaxAnswer), b...)
			var p, back packet.Packet
			if o := p.Parse(b); o != packet.OK && o != packet.NoPorts {
				return
			}
			dst := make([]byte, packet.MaxAnswer+1)
			n := write(dst[:packet.MaxAnswer], &p)
			if dst[packet.MaxAnswer] != 0 || len(bytes.TrimRight(dst, "\x00")) > n {
				t.Fatalf("bytes behind the answer of %d were written", n)
			}
			if n == 0 {
				continue
			}
			if err := frame.Check(dst[:n]); err != nil {
				t.Fatal(err)
			}
			if o := back.Parse(dst[:n]); o != packet.OK && o != packet.NoPorts || back.Src != p.Dst || back.Dst != p.Src || back.End != n {
				t.Fatalf("outcome %v, %v to %v, %d bytes of %d", o, back.Src, back.Dst, back.End, n)
			}
			if place := b[:cap(b)]; write(place, &p) != n || !bytes.Equal(place[:n], dst[:n]) {
				t.Fatal("written in place it differs")
			}
		}
	})
}
