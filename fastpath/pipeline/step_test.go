package pipeline

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// scenario is one sentence of the specification, with the packets that prove it. It is
// played in both families and for each of its protocols.
type scenario struct {
	sentence string
	over     []uint8 // protocols; nil: TCP and UDP
	given    func(*world)
	steps    []step
}

// step is one packet, or a change of the world.
type step struct {
	then func(*world) // done before the packet, if there is one

	sends string // "client:4000 > vip:80"; empty: no packet
	at    string // where the packet is met: "in NAME" or "out NAME" of a port; empty: in, where the source lives
	flags uint8  // of a TCP segment; 0: SYN for the first packet of a scenario, else ACK
	with  func(*frame.Frame)

	is      reason.Reason
	becomes string // what leaves, like sends; "" for drops; "=" unchanged; "*" as port: any of the node's range
	via     string // "direct NAME", "stack NAME" or "resume NAME" of a port
	ttl     int    // difference of the time to live
	answer  bool   // what leaves answers what came; becomes is the place that speaks, if it is not the destination
	mtu     uint32 // that the answer names
}

const (
	syn    = packet.FlagSYN
	ack    = packet.FlagACK
	synAck = packet.FlagSYN | packet.FlagACK
	fin    = packet.FlagFIN | packet.FlagACK
	rst    = packet.FlagRST
)

var (
	onlyTCP  = []uint8{packet.ProtocolTCP}
	onlyUDP  = []uint8{packet.ProtocolUDP}
	onlySCTP = []uint8{packet.ProtocolSCTP}
)

// met collects every reason that a scenario has shown.
var met struct {
	sync.Mutex
	reasons [reason.Count]bool
}

// play runs scenarios as subtests.
func play(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		over := s.over
		if over == nil {
			over = []uint8{packet.ProtocolTCP, packet.ProtocolUDP}
		}
		for _, protocol := range over {
			for _, family := range []int{4, 6} {
				t.Run(fmt.Sprintf("%s/%sv%d", s.sentence, packet.ProtocolName(protocol), family), func(t *testing.T) {
					w := newWorld(t, family, protocol)
					if s.given != nil {
						s.given(w)
					}
					for i := range s.steps {
						w.play(i, &s.steps[i])
					}
				})
			}
		}
	}
}

// play does one step and checks what it says.
func (w *world) play(i int, s *step) {
	w.t.Helper()
	if s.then != nil {
		s.then(w)
	}
	w.clock += time.Millisecond
	if s.sends == "" {
		return
	}
	in := w.frame(i, s)
	raw := in.Bytes()
	b := append(make([]byte, 0, 2048), raw...)
	trace := &Trace{}
	r := w.pipeline.Process(w.snapshot, b, w.punt(s), int64(w.clock), trace)
	met.Lock()
	met.reasons[r.Reason] = true
	met.Unlock()
	complain := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf("step %d, %s: %s\nthe pipeline's own account:\n%s", i+1, s.sends, fmt.Sprintf(format, args...), account(trace))
	}
	if r.Reason != s.is {
		complain("reason is %s, want %s", r.Reason, s.is)
		return
	}
	if r.Verdict != verdictOf(s.is) {
		complain("verdict is %s, want %s", r.Verdict, verdictOf(s.is))
		return
	}
	if r.Verdict == Drop {
		if s.becomes != "" || s.via != "" {
			complain("dropped, but the case says what it becomes")
		}
		return
	}
	if via := fmt.Sprintf("%s %s", injectNames[r.Inject], portNameOf(r.Port)); via != s.via {
		complain("delivered %s, want %s", via, s.via)
	}
	out := b[:r.Len]
	if how, port, ok := packet.ReadInject(out); !ok || how != r.Inject || port != r.Port {
		complain("the frame itself says %d, port %d, %v", how, port, ok)
	}
	if err := w.checkOut(s, &in, raw, out); err != nil {
		complain("%v", err)
	}
}

var injectNames = map[packet.Inject]string{packet.Direct: "direct", packet.Stack: "stack", packet.Resume: "resume"}

func portNameOf(id uint16) string {
	for name, n := range portIDs {
		if n == id {
			return name
		}
	}
	return fmt.Sprint(id)
}

// send is a step of which only the result matters.
func (w *world) send(s *step) Result {
	w.t.Helper()
	f := w.frame(0, s)
	return w.pipeline.Process(w.snapshot, append(make([]byte, 0, 2048), f.Bytes()...), w.punt(s), int64(w.clock), nil)
}

// portOf is an endpoint with another port.
func portOf(e netip.AddrPort, port uint16) netip.AddrPort { return netip.AddrPortFrom(e.Addr(), port) }

func sourcePort(port uint16) func(*frame.Frame) {
	return func(f *frame.Frame) { f.Src = portOf(f.Src, port) }
}

// frame builds what the step sends.
func (w *world) frame(i int, s *step) frame.Frame {
	w.t.Helper()
	src, dst, ok := strings.Cut(s.sends, " > ")
	if !ok {
		w.t.Fatalf("%q is not SOURCE > DESTINATION", s.sends)
	}
	from, to := w.endpoint(src).String(), w.endpoint(dst).String()
	var f frame.Frame
	switch w.protocol {
	case packet.ProtocolTCP:
		flags := s.flags
		if flags == 0 {
			flags = ack
			if i == 0 {
				flags = syn
			}
		}
		f = frame.TCP(from, to, flags, "payload")
	case packet.ProtocolUDP:
		f = frame.UDP(from, to, "payload")
	default:
		f = frame.SCTP(from, to, "\x01\x00\x00\x04")
	}
	if s.with != nil {
		s.with(&f)
	}
	return f
}

// punt says where the packet was met.
func (w *world) punt(s *step) packet.Punt {
	w.t.Helper()
	way, name, _ := strings.Cut(s.at, " ")
	if s.at == "" {
		way, name = "in", "wire"
		source, _, _ := strings.Cut(s.sends, ":")
		if _, local := portIDs[source]; local {
			name = source
		}
	}
	id, ok := portIDs[name]
	if !ok || way != "in" && way != "out" {
		w.t.Fatalf("%q is not in|out PORT", s.at)
	}
	return packet.Punt{Port: id, Egress: way == "out"}
}

// checkOut compares the frame that leaves with what the step says.
func (w *world) checkOut(s *step, in *frame.Frame, raw, out []byte) error {
	if s.becomes == "=" {
		// All but the trunk's Ethernet source is as it came.
		if string(out[:6]) != string(raw[:6]) || string(out[12:]) != string(raw[12:]) {
			return fmt.Errorf("changed to %x, want %x", out, raw)
		}
		return nil
	}
	if err := frame.Check(out); err != nil {
		return fmt.Errorf("what leaves is not well formed: %w", err)
	}
	got, err := frame.Decode(out)
	if err != nil {
		return fmt.Errorf("what leaves cannot be read: %w", err)
	}
	if s.answer {
		return w.checkAnswer(s, in, raw, &got)
	}
	src, dst, _ := strings.Cut(s.becomes, " > ")
	want := *in
	want.Dst = w.endpoint(dst)
	if name, any := strings.CutSuffix(src, ":*"); any {
		settings := w.snapshot.Settings()
		if p := got.Src.Port(); p < settings.SourcePortFirst || p > settings.SourcePortLast {
			return fmt.Errorf("source port %d is outside %d to %d", p, settings.SourcePortFirst, settings.SourcePortLast)
		}
		want.Src = netip.AddrPortFrom(w.addr(name), got.Src.Port())
	} else {
		want.Src = w.endpoint(src)
	}
	want.TTL = uint8(int(want.TTL) + s.ttl)
	want.Padding = 0
	if diff := frame.Diff(want, got); diff != "" {
		return fmt.Errorf("what leaves differs (-want +got):\n%s", diff)
	}
	return nil
}

// checkAnswer holds an answer to the RFCs: a refusal comes from where the packet went, what
// a router says from the router.
func (w *world) checkAnswer(s *step, in *frame.Frame, raw []byte, got *frame.Frame) error {
	protocol, typ, code, rest := packet.ProtocolICMP, uint8(3), uint8(3), uint32(0) // RFC 792
	if w.family == 6 {
		protocol, typ, code = packet.ProtocolICMPv6, 1, 4 // RFC 4443, section 3.1
	}
	from := in.Dst.Addr()
	if s.becomes != "" {
		from = w.addr(s.becomes)
	}
	switch {
	case s.is == reason.PacketTooBig && w.family == 4:
		code, rest = 4, s.mtu // RFC 1191, section 4
	case s.is == reason.PacketTooBig:
		typ, code, rest = 2, 0, s.mtu // RFC 4443, section 3.2
	case s.is == reason.TimeExceeded && w.family == 4:
		typ, code = 11, 0
	case s.is == reason.TimeExceeded:
		typ, code = 3, 0 // RFC 4443, section 3.3
	case in.Protocol == packet.ProtocolTCP:
		return checkReset(in, got)
	}
	if got.Protocol != protocol || got.ICMPType != typ || got.ICMPCode != code || got.ICMPRest != rest {
		return fmt.Errorf("protocol %d type %d code %d rest %d, want %d, %d, %d, %d", got.Protocol, got.ICMPType, got.ICMPCode, got.ICMPRest, protocol, typ, code, rest)
	}
	if got.Src.Addr() != from || got.Dst.Addr() != in.Src.Addr() {
		return fmt.Errorf("from %s to %s, want from %s to %s", got.Src.Addr(), got.Dst.Addr(), from, in.Src.Addr())
	}
	longest := map[int]int{4: 576 - 28, 6: 1280 - 48}[w.family]
	quoted := raw[14:min(len(raw), 14+longest)]
	if !bytes.Equal(got.Payload, quoted) {
		return fmt.Errorf("quotes %x, want the packet as its sender sent it %x", got.Payload, quoted)
	}
	return nil
}

// checkReset: RFC 9293, section 3.5.2.
func checkReset(in, got *frame.Frame) error {
	if got.Src != in.Dst || got.Dst != in.Src || got.Protocol != packet.ProtocolTCP {
		return fmt.Errorf("protocol %d from %s to %s, want TCP from %s to %s", got.Protocol, got.Src, got.Dst, in.Dst, in.Src)
	}
	if in.Flags&packet.FlagACK != 0 {
		if got.Flags != rst || got.Seq != in.Ack {
			return fmt.Errorf("flags %#x, sequence %d; want RST alone and sequence %d", got.Flags, got.Seq, in.Ack)
		}
		return nil
	}
	next := in.Seq + uint32(len(in.Payload))
	if in.Flags&packet.FlagSYN != 0 {
		next++
	}
	if in.Flags&packet.FlagFIN != 0 {
		next++
	}
	if got.Flags != rst|ack || got.Seq != 0 || got.Ack != next {
		return fmt.Errorf("flags %#x, sequence %d, acknowledgment %d; want RST ACK, 0, %d", got.Flags, got.Seq, got.Ack, next)
	}
	return nil
}

func account(t *Trace) string {
	var b strings.Builder
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "  %-9s %s\n", s.Name, s.Note)
	}
	return b.String()
}

// empty says what becomes of packets to a frontend without backends.
func empty(vip string, inside, outside table.Empty) func(*world) {
	return func(w *world) {
		w.serve(vip)
		f := &w.services[vip].frontend
		f.Inside.Empty, f.Outside.Empty = inside, outside
		w.publish()
	}
}

func serving(vip string, backends ...string) func(*world) {
	return func(w *world) { w.serve(vip, backends...) }
}
