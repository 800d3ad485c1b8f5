package pipeline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
)

// Headers that are rare and right.
var (
	oddOptions = map[string][]byte{
		"no-operations":        {1, 1, 1, 0},
		"record route":         {7, 7, 4, 0, 0, 0, 0, 0},
		"a timestamp":          {68, 8, 5, 0, 0, 0, 0, 0},
		"router alert":         {148, 4, 0, 0},
		"forty bytes":          bytes.Repeat([]byte{1}, 40),
		"an option of nobody":  {222, 4, 9, 9},
		"loose source routing": {131, 7, 8, 10, 0, 0, 9, 0}, // used up: the pointer is behind the list
	}
	oddExtensions = map[string][]frame.Extension{
		"hop-by-hop options":             {{Type: 0, Body: []byte{1, 4, 0, 0, 0, 0}}},
		"router alert":                   {{Type: 0, Body: []byte{5, 2, 0, 0, 1, 0}}},
		"destination options":            {{Type: 60, Body: make([]byte, 14)}},
		"a segment routing header":       {{Type: 43, Body: append([]byte{4, 0, 0, 0, 0, 0}, make([]byte, 16)...)}},
		"all of them, in order":          {{Type: 0, Body: make([]byte, 6)}, {Type: 60, Body: make([]byte, 6)}, {Type: 43, Body: append([]byte{4, 0, 0, 0, 0, 0}, make([]byte, 16)...)}, {Type: 60, Body: make([]byte, 6)}},
		"a fragment header that is none": {{Type: 44, Body: []byte{0, 0, 0, 0, 0, 9}}},
	}
)

// TestOddHeaders: options and extension headers go through a VIP as they are, both ways,
// for every protocol.
func TestOddHeaders(t *testing.T) {
	there := func(with func(*frame.Frame)) []step {
		return []step{
			{sends: "client:4000 > vip:80", flags: syn, with: with, is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1},
			{sends: "web:8080 > client:4000", flags: synAck, with: with, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1},
			{sends: "client:4000 > vip:80", with: with, is: reason.Established, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1},
		}
	}
	var all []scenario
	for name, options := range oddOptions {
		all = append(all, scenario{sentence: "IPv4 with " + name, over: allProtocols, given: serving("vip", "web:8080"), steps: there(func(f *frame.Frame) {
			if f.Src.Addr().Is4() {
				f.Options = options
			}
		})})
	}
	for name, chain := range oddExtensions {
		all = append(all, scenario{sentence: "IPv6 with " + name, over: allProtocols, given: serving("vip", "web:8080"), steps: there(func(f *frame.Frame) {
			if f.Src.Addr().Is6() {
				f.Extensions = chain
			}
		})})
	}
	play(t, all)
}

var allProtocols = []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP}

// TestOddRefused: what is rare and cannot be carried is dropped by name.
func TestOddRefused(t *testing.T) {
	only6 := func(change func(*frame.Frame)) func(*frame.Frame) {
		return func(f *frame.Frame) {
			if f.Src.Addr().Is4() {
				f.Payload, f.TTL = []byte("payload"), 64
				f.Options = []byte{}
				return
			}
			change(f)
		}
	}
	w := newWorld(t, 6, packet.ProtocolUDP)
	w.serve("vip", "web:8080")
	for _, c := range []struct {
		sentence string
		with     func(*frame.Frame)
		is       reason.Reason
	}{
		{"a jumbogram", only6(func(f *frame.Frame) { f.Extensions = []frame.Extension{{Type: 0, Body: []byte{0xc2, 4, 0, 1, 0, 0}}} }), reason.Malformed},
		{"a UDP datagram without checksum", only6(func(f *frame.Frame) { f.NoChecksum = true }), reason.Malformed},
		{"a segment routing header with segments left", only6(func(f *frame.Frame) {
			f.Extensions = []frame.Extension{{Type: 43, Body: append([]byte{4, 1, 0, 0, 0, 0}, make([]byte, 16)...)}}
		}), reason.UnsupportedProtocol},
		{"hop-by-hop options that are not in front", only6(func(f *frame.Frame) {
			f.Extensions = []frame.Extension{{Type: 60, Body: make([]byte, 6)}, {Type: 0, Body: make([]byte, 6)}}
		}), reason.Malformed},
	} {
		if r := w.send(&step{sends: "client:4000 > vip:80", with: c.with}); r.Reason != c.is || r.Verdict != Drop {
			t.Errorf("%s: %s %s, want a drop for %s", c.sentence, r.Verdict, r.Reason, c.is)
		}
	}
}

// TestNoChecksumStaysNone: over IPv4 zero says that a datagram has no checksum, and says so
// behind the VIP as well.
func TestNoChecksumStaysNone(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolUDP)
	w.serve("vip", "web:8080")
	none := func(f *frame.Frame) { f.NoChecksum = true }
	for i, s := range []step{
		{sends: "client:4000 > vip:80", with: none, is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1},
		{sends: "web:8080 > client:4000", with: none, is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1},
	} {
		w.play(i, &s)
	}
}

// flagBits are all nine of a TCP header: eight of byte 13, and the lowest of byte 12.
const flagBits = 1 << 9

// TestEveryTCPFlag: each combination of flags, on a connection and without one.
func TestEveryTCPFlag(t *testing.T) {
	for _, family := range []int{4, 6} {
		for flags := range flagBits {
			w := newWorld(t, family, packet.ProtocolTCP)
			w.serve("vip", "web:8080")
			low := uint8(flags)
			want := reason.NoFlow
			switch {
			case low&packet.FlagRST != 0:
				want = reason.StrayReset
			case low&(packet.FlagSYN|packet.FlagACK|packet.FlagFIN) == packet.FlagSYN:
				want = reason.NewFlow
			}
			if got := w.flagged("client:4000 > vip:80", flags); got != want {
				t.Errorf("IPv%d, flags %#03x without a connection: %s, want %s", family, flags, got, want)
			}
			w.flagged("client:4001 > vip:80", int(packet.FlagSYN))
			w.flagged("web:8080 > client:4001", int(packet.FlagSYN|packet.FlagACK))
			if got := w.flagged("client:4001 > vip:80", flags); got != reason.Established {
				t.Errorf("IPv%d, flags %#03x on a connection: %s, want established", family, flags, got)
			}
			if got := w.flagged("web:8080 > client:4001", flags); got != reason.Reply {
				t.Errorf("IPv%d, flags %#03x of a backend: %s, want reply", family, flags, got)
			}
		}
	}
}

// flagged sends a segment with these flags and an urgent pointer, and checks that what
// leaves has them too, and right checksums.
func (w *world) flagged(sends string, flags int) reason.Reason {
	w.t.Helper()
	s := step{sends: sends, flags: 0xff}
	f := w.frame(1, &s)
	b := f.Bytes()
	tcp := b[packet.EthernetLen+map[int]int{4: 20, 6: 40}[w.family]:]
	change := func(at int, word uint16) {
		old := binary.BigEndian.Uint16(tcp[at:])
		sum := uint32(^binary.BigEndian.Uint16(tcp[16:])) + uint32(^old) + uint32(word) // RFC 1624
		sum = sum&0xffff + sum>>16
		binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum+sum>>16))
		binary.BigEndian.PutUint16(tcp[at:], word)
	}
	change(12, 0x5000|uint16(flags))
	change(18, 5) // urgent pointer
	if err := frame.Check(b); err != nil {
		w.t.Fatalf("frame of the test: %v", err)
	}
	in := append(make([]byte, 0, 2048), b...)
	r := w.pipeline.Process(w.snapshot, in, w.punt(&s), int64(w.clock), nil)
	if r.Verdict == Drop {
		return r.Reason
	}
	out := in[:r.Len]
	if err := frame.Check(out); err != nil {
		w.t.Errorf("flags %#03x: %v", flags, err)
	}
	if got := out[len(out)-len(tcp):]; r.Verdict == Forward && (!bytes.Equal(got[4:16], tcp[4:16]) || !bytes.Equal(got[18:], tcp[18:])) {
		w.t.Errorf("flags %#03x: more than ports and checksum has changed\n%x\n%x", flags, tcp, got)
	}
	return r.Reason
}

// TestSCTPChecksums: random packets of every length, both ways, ports rewritten both ways,
// all leave with a right CRC32c by independent arithmetic.
func TestSCTPChecksums(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, packet.ProtocolSCTP)
		w.serve("vip", "remote:8080")
		for i := range 5000 {
			payload := make([]byte, 4+rng.IntN(1400))
			for j := range payload {
				payload[j] = byte(rng.Uint32())
			}
			port, tag := 1024+rng.IntN(300), rng.Uint32()
			with := func(f *frame.Frame) { f.Payload, f.Tag = payload, tag }
			s := step{sends: fmt.Sprintf("outside:%d > vip:80", port), with: with}
			if i%2 == 1 { // and back: the port that the node chose
				w.send(&s)
				s = step{sends: w.chosenFor(port), at: "in wire", with: with}
			}
			w.sums(&s, payload)
		}
	}
}

// chosenFor is the reply to the flow of an outside client.
func (w *world) chosenFor(port int) string {
	w.t.Helper()
	s := step{sends: fmt.Sprintf("outside:%d > vip:80", port)}
	f := w.frame(0, &s)
	in := append(make([]byte, 0, 2048), f.Bytes()...)
	r := w.pipeline.Process(w.snapshot, in, w.punt(&s), int64(w.clock), nil)
	got, err := frame.Decode(in[:r.Len])
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("remote:8080 > node:%d", got.Src.Port())
}

func (w *world) sums(s *step, payload []byte) {
	w.t.Helper()
	f := w.frame(0, s)
	in := append(make([]byte, 0, 2048), f.Bytes()...)
	r := w.pipeline.Process(w.snapshot, in, w.punt(s), int64(w.clock), nil)
	if r.Verdict != Forward {
		w.t.Fatalf("%s: %s", s.sends, r.Reason)
	}
	if err := frame.Check(in[:r.Len]); err != nil {
		w.t.Fatalf("%s of %d bytes: %v", s.sends, len(payload), err)
	}
	got, err := frame.Decode(in[:r.Len])
	if err != nil || !bytes.Equal(got.Payload, payload) || got.Dst.Port() == f.Dst.Port() {
		w.t.Fatalf("%s: the payload changed, or the port did not: %v", s.sends, err)
	}
}

// TestOutOfWindow: a reply is translated whatever its sequence numbers say: nobody here
// counts windows, and no backend's address gets to a client.
func TestOutOfWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, packet.ProtocolTCP)
		w.serve("vip", "web:8080")
		w.send(&step{sends: "client:4000 > vip:80", flags: syn})
		w.send(&step{sends: "web:8080 > client:4000", flags: synAck})
		for i := range 2000 {
			w.play(i+1, &step{
				sends: "web:8080 > client:4000", flags: ack, with: func(f *frame.Frame) { f.Seq, f.Ack, f.Window = rng.Uint32(), rng.Uint32(), uint16(rng.Uint32()) },
				is: reason.Reply, becomes: "vip:80 > client:4000", via: "direct client", ttl: -1,
			})
		}
	}
}

// TestEtherTypes: of all ether types IP alone is looked at; the rest goes back whole.
func TestEtherTypes(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolTCP)
	w.serve("vip", "web:8080")
	f := w.frame(0, &step{sends: "client:4000 > vip:80"})
	for kind := range 1 << 16 {
		if kind == 0x0800 || kind == 0x86dd {
			continue
		}
		b := f.Bytes()
		binary.BigEndian.PutUint16(b[12:], uint16(kind))
		want := bytes.Clone(b)
		r := w.pipeline.Process(w.snapshot, b, packet.Punt{Port: portIDs["client"]}, int64(w.clock), nil)
		if kind == 0x8100 && r.Reason == reason.Malformed {
			continue // what lies behind the tag is no whole frame
		}
		if r.Reason != reason.NotClaimed || !bytes.Equal(b[12:r.Len], want[12:]) {
			t.Fatalf("ether type %#04x: %s %s", kind, r.Verdict, r.Reason)
		}
	}
}
