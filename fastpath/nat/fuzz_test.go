package nat

import (
	"bytes"
	"encoding/binary"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// FuzzApply rewrites arbitrary frames. What was well formed stays so; nothing but
// addresses, ports and checksums changes; the reverse rewrite gives the packet back; what
// is refused is not touched.
func FuzzApply(f *testing.F) {
	for _, fam := range families {
		for _, protocol := range protocols {
			f.Add(protocol.make(fam.client, fam.vip, "payload!").Bytes(), []byte("some other address and port!"), true)
		}
	}
	f.Fuzz(func(t *testing.T, b, to []byte, masked bool) {
		b = bytes.Clone(b)
		before := bytes.Clone(b)
		var p packet.Packet
		outcome := p.Parse(b)
		if outcome != packet.OK && outcome != packet.NoPorts {
			return
		}
		tr := arbitrary(&p, to, masked)
		fwd, rev := tr.pair()
		good := frame.Check(b) == nil
		if !Apply(&p, &fwd.Rewrite) {
			if !bytes.Equal(b, before) {
				t.Fatal("refused but changed")
			}
			if good && outcome == packet.OK && !p.Fragment {
				t.Fatal("a good packet was refused")
			}
			return
		}
		if err := frame.Check(b); good && err != nil {
			t.Fatalf("a good frame went bad: %v", err)
		}
		expectOnlyHeaders(t, &p, before, b)
		if p.Parse(b) != outcome || p.Src != fwd.Rewrite.Src || p.Dst != fwd.Rewrite.Dst {
			t.Fatalf("parsed again: %v to %v, want %v to %v", p.Src, p.Dst, fwd.Rewrite.Src, fwd.Rewrite.Dst)
		}
		back := rev.Rewrite
		back.Src, back.Dst, back.SrcPort, back.DstPort = back.Dst, back.Src, back.DstPort, back.SrcPort
		if !Apply(&p, &back) {
			t.Fatal("the reverse was refused")
		}
		if good && !bytes.Equal(b, before) && !sameButZero(&p, before, b) {
			t.Fatalf("there and back:\n%x\n%x", before, b)
		}
	})
}

// arbitrary makes a translation of a packet's own tuple to addresses and ports out of b.
func arbitrary(p *packet.Packet, b []byte, masked bool) Translation {
	var raw [36]byte
	copy(raw[:], b)
	at := func(i int) packet.Addr {
		if p.Family == 4 {
			return packet.Addr4([4]byte(raw[i:]))
		}
		a := packet.Addr(raw[i:])
		a[0] |= 0x20 // not v4-mapped
		return a
	}
	tuple := conntrack.Tuple{Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort, Protocol: p.Protocol}
	tr := To(&tuple, 0, at(0), binary.BigEndian.Uint16(raw[32:]))
	if masked {
		tr.Source, tr.SourcePort = at(16), binary.BigEndian.Uint16(raw[34:])
	}
	return tr
}

// expectOnlyHeaders compares all but addresses, ports and checksums.
func expectOnlyHeaders(t *testing.T, p *packet.Packet, before, after []byte) {
	t.Helper()
	mask := func(b []byte) []byte {
		b = bytes.Clone(b)
		if p.Family == 4 {
			clear(b[p.L3+ip4Check : p.L3+ip4Check+2])
			clear(b[p.L3+ip4Src : p.L3+ip4Len])
		} else {
			clear(b[p.L3+ip6Src : p.L3+ip6Len])
		}
		if p.L4 == 0 {
			return b
		}
		clear(b[p.L4 : p.L4+4])
		switch p.Protocol {
		case tcp:
			clear(b[p.L4+tcpCheck : p.L4+tcpCheck+2])
		case udp:
			clear(b[p.L4+udpCheck : p.L4+udpCheck+2])
		case sctp:
			clear(b[p.L4+8 : p.L4+12])
		}
		return b
	}
	if !bytes.Equal(mask(before), mask(after)) {
		t.Fatalf("more than headers changed:\n%x\n%x", before, after)
	}
}

// sameButZero allows for the two ways of writing a checksum of zero: a sender may use
// either, a rewrite gives one.
func sameButZero(p *packet.Packet, before, after []byte) bool {
	a, b := bytes.Clone(before), bytes.Clone(after)
	normal := func(c []byte, i int) {
		if binary.BigEndian.Uint16(c[i:]) == 0xffff {
			clear(c[i : i+2])
		}
	}
	for _, c := range [][]byte{a, b} {
		if p.Family == 4 {
			normal(c, p.L3+ip4Check)
		}
		if p.L4 != 0 && p.Protocol == tcp {
			normal(c, p.L4+tcpCheck)
		}
	}
	return bytes.Equal(a, b)
}
