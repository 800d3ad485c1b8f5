package nat_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/checksum"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// direction is one direction of a flow, from tuple to rewrite, and its opposite: that which
// takes rewritten packets back.
func direction(protocol uint8, src, dst, newSrc, newDst netip.AddrPort) (there, back conntrack.Flow) {
	t := nat.Translation{
		Client: conntrack.Tuple{
			Src: packet.AddrFrom(src.Addr()), Dst: packet.AddrFrom(dst.Addr()), SrcPort: src.Port(), DstPort: dst.Port(), Protocol: protocol,
		},
		Backend: packet.AddrFrom(newDst.Addr()), BackendPort: newDst.Port(),
		Source: packet.AddrFrom(newSrc.Addr()), SourcePort: newSrc.Port(),
	}
	var unused conntrack.Flow
	t.Make(&there, &unused)
	t.Client = conntrack.Tuple{Src: t.Source, Dst: t.Backend, SrcPort: t.SourcePort, DstPort: t.BackendPort, Protocol: protocol}
	t.Source, t.Backend, t.SourcePort, t.BackendPort = packet.AddrFrom(src.Addr()), packet.AddrFrom(dst.Addr()), src.Port(), dst.Port()
	t.Make(&back, &unused)
	return there, back
}

// original is a packet of the flow as one who answers it sent it.
func original(protocol uint8, src, dst netip.AddrPort) []byte {
	switch protocol {
	case packet.ProtocolTCP:
		return frame.TCP(src.String(), dst.String(), packet.FlagACK, "payload that may be cut").Bytes()[14:]
	case packet.ProtocolUDP:
		return frame.UDP(src.String(), dst.String(), "payload that may be cut").Bytes()[14:]
	}
	return frame.SCTP(src.String(), dst.String(), "payload that may be cut.").Bytes()[14:]
}

func errorAbout(from, to netip.Addr, quoted []byte) []byte {
	typ := uint8(3)
	if from.Is6() {
		typ = 1
	}
	return frame.ICMP(from.String(), to.String(), typ, 0, string(quoted)).Bytes()
}

func applyError(b []byte, f *conntrack.Flow) bool {
	var p packet.Packet
	var q packet.Quote
	p.Parse(b)
	return q.Parse(&p) == packet.OK && nat.ApplyError(&p, &q, f)
}

var cases = []struct {
	name                     string
	src, dst, newSrc, newDst string // of a packet that travels as the error does
}{
	{"reply of a backend, client kept", "10.244.1.3:8080", "10.244.1.2:4000", "10.96.0.10:80", "10.244.1.2:4000"},
	{"reply of a backend, client rewritten", "10.244.2.3:8080", "172.30.0.11:61234", "10.96.0.10:80", "172.30.0.100:4000"},
	{"packet of a client rewritten", "172.30.0.100:4000", "10.96.0.10:80", "172.30.0.11:61234", "10.244.2.3:8080"},
	{"IPv6 reply", "[fd00:10:244:2::3]:8080", "[fd30::11]:61234", "[fd00:10:96::10]:80", "[fd30::100]:4000"},
	{"IPv6 packet", "[fd30::100]:4000", "[fd00:10:96::10]:80", "[fd30::11]:61234", "[fd00:10:244:2::3]:8080"},
}

// TestErrorIsThatOfTheOriginal: an error about a translated packet becomes, to the byte, the
// error about the packet that was sent, however little of it is quoted.
func TestErrorIsThatOfTheOriginal(t *testing.T) {
	for _, c := range cases {
		src, dst := netip.MustParseAddrPort(c.src), netip.MustParseAddrPort(c.dst)
		newSrc, newDst := netip.MustParseAddrPort(c.newSrc), netip.MustParseAddrPort(c.newDst)
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP} {
			f, _ := direction(protocol, src, dst, newSrc, newDst)
			was, is := original(protocol, dst, src), original(protocol, newDst, newSrc)
			for n := range len(was) + 1 {
				t.Run(fmt.Sprintf("%s/%d/%d bytes", c.name, protocol, n), func(t *testing.T) {
					got, want := errorAbout(src.Addr(), dst.Addr(), was[:n]), errorAbout(newSrc.Addr(), newDst.Addr(), is[:n])
					if !applyError(got, &f) {
						if !bytes.Equal(got, errorAbout(src.Addr(), dst.Addr(), was[:n])) {
							t.Error("refused, but changed")
						}
						if header := len(was) - transportOf(protocol, was); n >= header+4 {
							t.Error("refused although the ports are there")
						}
						return
					}
					if cutInChecksum(protocol, n-(len(was)-transportOf(protocol, was))) {
						return // half a checksum cannot be carried on: it stays
					}
					if !bytes.Equal(got, want) {
						t.Errorf("\n got %x\nwant %x", got, want)
					}
					if err := frame.Check(got); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// transportOf is the length of transport header and payload.
func transportOf(protocol uint8, ip []byte) int {
	if ip[0]>>4 == 4 {
		return len(ip) - 20
	}
	return len(ip) - 40
}

func cutInChecksum(protocol uint8, n int) bool {
	switch protocol {
	case packet.ProtocolTCP:
		return n == 17
	case packet.ProtocolUDP:
		return n == 7
	}
	return n > 8 && n < 12
}

// TestErrorThereAndBack: an error translated and translated back is the same, to the byte,
// whatever is wrong with its checksums.
func TestErrorThereAndBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		c := cases[rng.IntN(len(cases))]
		protocol := []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP}[rng.IntN(3)]
		port := func(s string) netip.AddrPort {
			return netip.AddrPortFrom(netip.MustParseAddrPort(s).Addr(), uint16(1+rng.IntN(65535)))
		}
		src, dst, newSrc, newDst := port(c.src), port(c.dst), port(c.newSrc), port(c.newDst)
		there, back := direction(protocol, src, dst, newSrc, newDst)
		b := errorAbout(src.Addr(), dst.Addr(), original(protocol, dst, src))
		spoil(b, rng)
		before := bytes.Clone(b)
		if !applyError(b, &there) || !applyError(b, &back) {
			t.Fatalf("%s: not translated", c.name)
		}
		if !bytes.Equal(b, before) {
			t.Fatalf("%s, protocol %d: there and back\n got %x\nwant %x", c.name, protocol, b, before)
		}
	}
}

// spoil damages the checksums of the error and of what it quotes. One's complement has two
// zeros, of which translation knows one: neither is written.
func spoil(b []byte, rng *rand.Rand) {
	header, icmp := 20, 34
	if b[14]>>4 == 6 {
		header, icmp = 40, 54
	}
	quoted := icmp + 8
	at := []int{icmp + 2, quoted + header + 6, quoted + header + 16}
	if header == 20 {
		at = append(at, quoted+10, 24)
	}
	for _, i := range at {
		binary.BigEndian.PutUint16(b[i:], uint16(1+rng.IntN(0xfffe)))
	}
}

// TestErrorOfAnother: an error that does not quote this flow's packet is left alone.
func TestErrorOfAnother(t *testing.T) {
	c := cases[0]
	src, dst := netip.MustParseAddrPort(c.src), netip.MustParseAddrPort(c.dst)
	f, back := direction(packet.ProtocolTCP, src, dst, netip.MustParseAddrPort(c.newSrc), netip.MustParseAddrPort(c.newDst))
	six, _ := direction(packet.ProtocolTCP, src, dst, netip.MustParseAddrPort(cases[3].newSrc), netip.MustParseAddrPort(cases[3].newDst))
	udp := f
	udp.Protocol = packet.ProtocolUDP
	for name, other := range map[string]*conntrack.Flow{"the other direction": &back, "the other family": &six, "another protocol": &udp} {
		b := errorAbout(src.Addr(), dst.Addr(), original(packet.ProtocolTCP, dst, src))
		before := bytes.Clone(b)
		if applyError(b, other) || !bytes.Equal(b, before) {
			t.Errorf("%s: translated", name)
		}
	}
}

// FuzzApplyError: whatever an error quotes, translating it touches nothing outside of it
// and back again gives what it was, but for the two zeros of one's complement.
func FuzzApplyError(f *testing.F) {
	for i, c := range cases {
		src, dst := netip.MustParseAddrPort(c.src), netip.MustParseAddrPort(c.dst)
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP} {
			b := errorAbout(src.Addr(), dst.Addr(), original(protocol, dst, src))
			f.Add(b, uint8(i))
			f.Add(b[:len(b)-20], uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		c := cases[int(which)%len(cases)]
		var p packet.Packet
		var q packet.Quote
		if p.Parse(b) != packet.NoPorts || !p.IsError() || q.Parse(&p) != packet.OK {
			return
		}
		there, back := direction(q.Protocol, netip.MustParseAddrPort(c.src), netip.MustParseAddrPort(c.dst), netip.MustParseAddrPort(c.newSrc), netip.MustParseAddrPort(c.newDst))
		if p.Src == there.Rewrite.Src {
			return // whoever bears the translated address already is taken for it on the way back
		}
		before, length := bytes.Clone(b), p.End
		if !nat.ApplyError(&p, &q, &there) {
			if !bytes.Equal(b, before) {
				t.Fatal("refused, but changed")
			}
			return
		}
		if len(b) != len(before) || !bytes.Equal(b[length:], before[length:]) {
			t.Fatal("what lies behind the packet was changed")
		}
		if !applyError(b, &back) {
			t.Fatal("there, but not back")
		}
		if got, want := canonical(b), canonical(before); !bytes.Equal(got, want) {
			t.Fatalf("there and back\n got %x\nwant %x", got, want)
		}
	})
}

// canonical writes the zero of one's complement in one way wherever a checksum may lie.
func canonical(b []byte) []byte {
	b = bytes.Clone(b)
	for i := 0; i+1 < len(b); i += 2 {
		if checksum.Get(b[i:]) == 0xffff {
			checksum.Put(b[i:], 0)
		}
	}
	return b
}
