package pipeline

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// complaint is one sentence about an ICMP error: who sends it to whom about which packet,
// and what leaves instead. It is played in both families, for each protocol, and each
// type and code.
type complaint struct {
	sentence string
	given    func(*world)
	flow     []step // sent before

	from, to string // places
	about    string // the quoted packet, "client:4000 > web:8080"; "*" as source port: what the node chose
	at       string // as in a step; empty: in, where from lives
	types4   [][2]uint8
	types6   [][2]uint8
	with     func(*frame.Frame) // changes the quoted packet
	hops     uint8              // of the error; 0: 64
	uncut    bool               // nobody may cut the error

	is              reason.Reason
	becomesFrom     string
	becomesTo       string
	aboutThen       string
	via             string
	ttl             int
	unchangedPassed bool // leaves as it came
}

// Every type that RFC 5508 (by RFC 792) and RFC 4443 name, unreachable with all its codes.
var (
	errors4 = [][2]uint8{{11, 0}, {11, 1}, {12, 0}, {12, 1}, {12, 2}}
	errors6 = [][2]uint8{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {2, 0}, {3, 0}, {3, 1}, {4, 0}, {4, 1}, {4, 2}}
	one4    = [][2]uint8{{3, 4}}
	one6    = [][2]uint8{{2, 0}}
)

func init() {
	for code := range uint8(16) {
		errors4 = append(errors4, [2]uint8{3, code})
	}
}

const errorRest = 0x00000578 // an MTU of 1400, and nothing in the octets that RFC 4884 took

func (c *complaint) play(t *testing.T) {
	t.Helper()
	for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP} {
		for _, family := range []int{4, 6} {
			types := c.types4
			if family == 6 {
				types = c.types6
			}
			if types == nil {
				types = map[int][][2]uint8{4: one4, 6: one6}[family]
			}
			t.Run(fmt.Sprintf("%s/%sv%d", c.sentence, packet.ProtocolName(protocol), family), func(t *testing.T) {
				w := newWorld(t, family, protocol)
				c.given(w)
				for i := range c.flow {
					w.play(i, &c.flow[i])
				}
				for _, typ := range types {
					w.complain(c, typ[0], typ[1])
				}
			})
		}
	}
}

// quoted is a packet of the world's protocol as it is on the wire, from its IP header on.
func (w *world) quoted(about string, with func(*frame.Frame)) []byte {
	w.t.Helper()
	src, dst, _ := strings.Cut(about, " > ")
	s := step{sends: w.chosen(src) + " > " + w.chosen(dst), flags: ack, with: with}
	f := w.frame(0, &s)
	return f.Bytes()[14:]
}

// chosen puts the source port that the node chose for outside:4000 in the place of "*".
func (w *world) chosen(endpoint string) string {
	name, any := strings.CutSuffix(endpoint, ":*")
	if !any {
		return endpoint
	}
	from, to := w.endpoint("outside:4000"), w.endpoint("vip:80")
	var f conntrack.Flow
	tuple := conntrack.Tuple{Src: packet.AddrFrom(from.Addr()), Dst: packet.AddrFrom(to.Addr()), SrcPort: from.Port(), DstPort: to.Port(), Protocol: w.protocol}
	if !w.flows.Lookup(&tuple, &f) {
		w.t.Fatal("the node has chosen no source port")
	}
	return fmt.Sprintf("%s:%d", name, f.Rewrite.SrcPort)
}

func (w *world) icmp(from, to string, typ, code uint8, quoted []byte) frame.Frame {
	f := frame.ICMP(w.addr(from).String(), w.addr(to).String(), typ, code, string(quoted))
	f.ICMPRest = errorRest
	return f
}

func (w *world) complain(c *complaint, typ, code uint8) {
	w.t.Helper()
	in := w.icmp(c.from, c.to, typ, code, w.quoted(c.about, c.with))
	if c.hops != 0 {
		in.TTL = c.hops
	}
	in.DF = c.uncut && w.family == 4
	raw := in.Bytes()
	b := append(make([]byte, 0, 4096), raw...)
	before := w.everything()
	trace := &Trace{}
	r := w.pipeline.Process(w.snapshot, b, w.punt(&step{sends: c.from + ":0 > x", at: c.at}), int64(w.clock), trace)
	met.Lock()
	met.reasons[r.Reason] = true
	met.Unlock()
	if d := cmp.Diff(before, w.everything(), cmpopts.EquateComparable(conntrack.Flow{})); d != "" {
		w.t.Errorf("type %d code %d: the flow table has changed (-before +after)\n%s", typ, code, d)
	}
	fail := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf("type %d code %d: %s\n%s", typ, code, fmt.Sprintf(format, args...), account(trace))
	}
	if r.Reason != c.is {
		fail("reason is %s, want %s", r.Reason, c.is)
		return
	}
	if r.Verdict == Drop {
		return
	}
	if via := fmt.Sprintf("%s %s", injectNames[r.Inject], portNameOf(r.Port)); via != c.via {
		fail("delivered %s, want %s", via, c.via)
	}
	out := b[:r.Len]
	if c.unchangedPassed {
		if !bytes.Equal(out[12:], raw[12:]) {
			fail("changed on its way to the kernel")
		}
		return
	}
	want := w.icmp(c.becomesFrom, c.becomesTo, typ, code, w.quoted(c.aboutThen, c.with))
	want.TTL = uint8(int(in.TTL) + c.ttl)
	if err := frame.Check(out); err != nil {
		fail("what leaves is not well formed: %v", err)
	}
	got, err := frame.Decode(out)
	if err != nil {
		fail("what leaves cannot be read: %v", err)
	}
	if d := frame.Diff(want, got); d != "" {
		fail("what leaves differs (-want +got)\n%s", d)
	}
}

// everything is all that the flow table knows.
func (w *world) everything() (all []conntrack.Flow) {
	w.flows.Range(func(f *conntrack.Flow) bool {
		all = append(all, *f)
		return true
	})
	return all
}

var (
	openedByOutside = step{sends: "outside:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1}
	openedByNode    = step{sends: "node:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "node:4000 > remote:8080", via: "direct wire"}
	openedToNode    = step{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4000 > node:8080", via: "stack client"}
	openedToRemote  = step{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1}
	openedToItself  = step{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "vip:4000 > client:8080", via: "direct client", ttl: -1}
)

// TestICMPErrorTranslated: every error about a packet of a registered flow reaches the
// packet's sender in the words in which it sent the packet. In each case the bytes that
// leave are those of an error built from scratch, and the flow table stays as it was.
func TestICMPErrorTranslated(t *testing.T) {
	play := func(cases []complaint) {
		for i := range cases {
			cases[i].is = reason.ICMPTranslated
			cases[i].play(t)
		}
	}
	play([]complaint{
		{
			sentence: "what the backend itself says of a packet comes from the VIP",
			given:    serving("vip", "web:8080"), flow: []step{opens}, types4: errors4, types6: errors6,
			from: "web", to: "client", about: "client:4000 > web:8080",
			becomesFrom: "vip", becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "direct client", ttl: -1,
		},
		{
			sentence: "what a router says of a packet to a backend keeps the router's address",
			given:    serving("vip", "remote:8080"), flow: []step{openedToRemote}, types4: errors4, types6: errors6,
			from: "router", to: "client", about: "client:4000 > remote:8080",
			becomesFrom: "router", becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "direct client", ttl: -1,
		},
		{
			sentence: "what the client says of a reply goes to the backend that sent the reply",
			given:    serving("vip", "web:8080"), flow: []step{opens}, types4: errors4, types6: errors6,
			from: "client", to: "vip", about: "vip:80 > client:4000",
			becomesFrom: "client", becomesTo: "web", aboutThen: "web:8080 > client:4000", via: "direct web", ttl: -1,
		},
		{
			sentence: "what a router says of a packet whose source was rewritten goes to the client outside",
			given:    serving("vip", "remote:8080"), flow: []step{openedByOutside}, types4: errors4, types6: errors6,
			from: "router", to: "node", about: "node:* > remote:8080",
			becomesFrom: "router", becomesTo: "outside", aboutThen: "outside:4000 > vip:80", via: "direct wire", ttl: -1,
		},
		{
			sentence: "what a remote backend says of a packet whose source was rewritten comes from the VIP",
			given:    serving("vip", "remote:8080"), flow: []step{openedByOutside},
			from: "remote", to: "node", about: "node:* > remote:8080",
			becomesFrom: "vip", becomesTo: "outside", aboutThen: "outside:4000 > vip:80", via: "direct wire", ttl: -1,
		},
		{
			sentence: "what the client outside says of a reply comes from whom the backend knows as its client",
			given:    serving("vip", "remote:8080"), flow: []step{openedByOutside}, types4: errors4, types6: errors6,
			from: "outside", to: "vip", about: "vip:80 > outside:4000",
			becomesFrom: "node", becomesTo: "remote", aboutThen: "remote:8080 > node:*", via: "direct wire", ttl: -1,
		},
		{
			sentence: "what a router says of a reply to the client outside keeps the router's address",
			given:    serving("vip", "remote:8080"), flow: []step{openedByOutside},
			from: "router", to: "vip", about: "vip:80 > outside:4000",
			becomesFrom: "router", becomesTo: "remote", aboutThen: "remote:8080 > node:*", via: "direct wire", ttl: -1,
		},
		{
			sentence: "a pod that is its own backend complains to itself",
			given:    serving("vip", "client:8080"), flow: []step{openedToItself}, types4: errors4, types6: errors6,
			from: "client", to: "vip", about: "vip:4000 > client:8080",
			becomesFrom: "vip", becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "direct client", ttl: -1,
		},
		{
			sentence: "a pod that is its own client complains of a reply to itself",
			given:    serving("vip", "client:8080"), flow: []step{openedToItself},
			from: "client", to: "vip", about: "vip:80 > client:4000",
			becomesFrom: "vip", becomesTo: "client", aboutThen: "client:8080 > vip:4000", via: "direct client", ttl: -1,
		},
		{
			sentence: "what a router says to the node's own client is taken from the wire, where the router is looked for",
			given:    serving("vip", "remote:8080"), flow: []step{openedByNode},
			from: "router", to: "node", about: "node:4000 > remote:8080",
			becomesFrom: "router", becomesTo: "node", aboutThen: "node:4000 > vip:80", via: "stack wire",
		},
		{
			sentence: "what the backend says to the node's own client comes from where the VIP is",
			given:    serving("vip", "remote:8080"), flow: []step{openedByNode},
			from: "remote", to: "node", about: "node:4000 > remote:8080",
			becomesFrom: "vip", becomesTo: "node", aboutThen: "node:4000 > vip:80", via: "direct node",
		},
		{
			sentence: "what a client says to a backend in the node's own stack goes up from the client's port",
			given:    serving("vip", "node:8080"), flow: []step{openedToNode},
			from: "client", to: "vip", about: "vip:80 > client:4000",
			becomesFrom: "client", becomesTo: "node", aboutThen: "node:8080 > client:4000", via: "stack client",
		},
		{
			sentence: "what the node's own stack says of a packet that it forwarded is translated on its way out to the client",
			given:    serving("vip", "remote:8080"), flow: []step{openedToRemote}, types4: errors4, types6: errors6,
			from: "node", to: "client", about: "client:4000 > remote:8080", at: "out client",
			becomesFrom: "node", becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "direct client",
		},
		{
			sentence: "what the node's own stack says of an outside client's packet is translated on its way out to the wire",
			given:    serving("vip", "web:8080"),
			flow:     []step{{sends: "outside:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1}},
			from:     "node", to: "outside", about: "outside:4000 > web:8080", at: "out wire",
			becomesFrom: "node", becomesTo: "outside", aboutThen: "outside:4000 > vip:80", via: "direct wire",
		},
		{
			sentence: "a flow whose target has moved does not lose the error, which changes nothing of it",
			given:    serving("vip", "web:8080"), flow: []step{opens, {then: func(w *world) { w.moveTo("client", "other"); w.port("client", func(p *table.Port) { p.Generation++ }) }}},
			from: "web", to: "client", about: "client:4000 > web:8080",
			becomesFrom: "vip", becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "direct other", ttl: -1,
		},
		{
			sentence: "a flow whose target's port is gone does not lose the error either",
			given:    serving("vip", "web:8080"), flow: []step{opens, {then: func(w *world) { w.moveTo("client", "other"); w.unplug("client") }}},
			from: "web", to: "client", about: "client:4000 > web:8080",
			becomesFrom: "vip", becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "direct other", ttl: -1,
		},
		{
			sentence: "a quoted packet keeps its IP options and extension headers",
			given:    serving("vip", "web:8080"), flow: []step{opens}, with: encumbered,
			from: "web", to: "client", about: "client:4000 > web:8080",
			becomesFrom: "vip", becomesTo: "client", aboutThen: "client:4000 > vip:80", via: "direct client", ttl: -1,
		},
	})
}

func encumbered(f *frame.Frame) {
	if f.Src.Addr().Is4() {
		f.Options = []byte{1, 1, 1, 0}
		return
	}
	f.Extensions = []frame.Extension{{Type: 60, Body: make([]byte, 6)}, {Type: 43, Body: []byte{4, 0, 0, 0, 0, 0}}}
}

// TestICMPErrorNotTranslated: what is no error about a registered flow, or is forged, or
// would do harm.
func TestICMPErrorNotTranslated(t *testing.T) {
	serves := serving("vip", "web:8080")
	advice := [][2]uint8{{4, 0}, {5, 0}, {5, 1}, {5, 2}, {5, 3}}
	for _, c := range []complaint{
		{
			sentence: "an error to a VIP about a packet that nobody sent is dropped", given: serves, flow: []step{opens},
			types4: errors4, types6: errors6,
			from: "client", to: "vip", about: "vip:80 > client:4999", is: reason.ICMPError,
		},
		{
			sentence: "an error about traffic between pods is the kernel's", given: serves, flow: []step{opens},
			from: "web", to: "client", about: "client:4000 > web:9999", is: reason.NotClaimed, unchangedPassed: true, via: "stack web",
		},
		{
			sentence: "an error met on its way out about nothing that is known goes on", given: serves, flow: []step{opens},
			from: "node", to: "client", about: "client:4000 > web:9999", at: "out client", is: reason.NotClaimed, unchangedPassed: true, via: "resume client",
		},
		{
			sentence: "an error to somebody who did not send the quoted packet is not about the flow", given: serves, flow: []step{opens},
			from: "web", to: "other", about: "client:4000 > web:8080", is: reason.NotClaimed, unchangedPassed: true, via: "stack web",
		},
		{
			sentence: "a pod that tells another of a packet as it was before its translation cannot have met it", given: serves, flow: []step{opens},
			types4: errors4, types6: errors6,
			from: "web", to: "client", about: "client:4000 > vip:80", is: reason.UnwantedICMP,
		},
		{
			sentence: "nor can it without a flow, and on a port that the VIP does not have", given: serves,
			from: "other", to: "client", about: "client:4999 > vip:81", is: reason.UnwantedICMP,
		},
		{
			sentence: "nor can a router outside", given: serves, flow: []step{opens},
			from: "router", to: "client", about: "client:4000 > vip:80", is: reason.UnwantedICMP,
		},
		{
			sentence: "nor can a pod have met what the node sent to a VIP", given: serves,
			from: "web", to: "node", about: "node:4000 > vip:80", is: reason.UnwantedICMP,
		},
		{
			sentence: "a router may have met what the node sent to a VIP by a route of its own", given: serves,
			from: "router", to: "node", about: "node:4000 > vip:80", is: reason.NotClaimed, unchangedPassed: true, via: "stack wire",
		},
		{
			sentence: "an error on its way to a client elsewhere, about its packet to the VIP, goes on", given: serves,
			from: "router", to: "outside", about: "outside:4000 > vip:80", is: reason.NotClaimed, unchangedPassed: true, via: "stack wire",
		},
		{
			sentence: "what the node's own stack says of a packet to the VIP goes on", given: serves,
			from: "node", to: "client", about: "client:4000 > vip:80", at: "out client", is: reason.NotClaimed, unchangedPassed: true, via: "resume client",
		},
		{
			sentence: "a pod may not complain in another's name", given: serves, flow: []step{opens},
			from: "web", to: "client", about: "client:4000 > web:8080", at: "in other", is: reason.SpoofedSource,
		},
		{
			sentence: "a pod may not complain of a packet that was not addressed to it", given: serves, flow: []step{opens},
			from: "other", to: "client", about: "client:4000 > web:8080", is: reason.SpoofedSource,
		},
		{
			sentence: "the wire may not complain in a local pod's name", given: serves, flow: []step{opens},
			from: "web", to: "client", about: "client:4000 > web:8080", at: "in wire", is: reason.SpoofedSource,
		},
		{
			sentence: "a redirect or a source quench about a flow is dropped", given: serves, flow: []step{opens},
			types4: advice, types6: [][2]uint8{},
			from: "web", to: "client", about: "client:4000 > web:8080", is: reason.UnwantedICMP,
		},
		{
			sentence: "an error about a flow whose Service is gone is dropped", given: serves,
			flow: []step{opens, {then: func(w *world) { delete(w.services, "vip"); w.publish() }}},
			from: "web", to: "client", about: "client:4000 > web:8080", is: reason.FlowEnded,
		},
		{
			sentence: "an error about a flow that has expired is not about a flow, and does not collect it", given: serves,
			flow: []step{opens, {then: later(25 * time.Hour)}},
			from: "web", to: "client", about: "client:4000 > web:8080", is: reason.NotClaimed, unchangedPassed: true, via: "stack web",
		},
		{
			sentence: "an error whose own time to live is used up is dropped, for errors are not answered", given: serves, flow: []step{opens}, hops: 1,
			from: "web", to: "client", about: "client:4000 > web:8080", is: reason.TTLExceeded,
		},
		{
			sentence: "an error that does not fit the way out is dropped, for errors are not answered", given: func(w *world) {
				serves(w)
				w.port("client", func(p *table.Port) { p.MTU = 68 })
			}, flow: []step{opens}, with: func(f *frame.Frame) { f.Payload = make([]byte, 60) }, uncut: true,
			from: "web", to: "client", about: "client:4000 > web:8080", is: reason.TooBig,
		},
		{
			sentence: "an error to the node about nothing that is known cannot be given back and is dropped", given: serves, flow: []step{opens},
			from: "node", to: "nobody", about: "nobody:80 > node:4000", is: reason.UnallocatedVIP,
		},
		{
			sentence: "there is no way to the flow's end any more", given: serves,
			flow: []step{opens, {then: func(w *world) {
				w.moveTo("client", "web")
				w.contents.Addresses = w.contents.Addresses[:0]
				w.contents.Routes = nil
				w.port("client", func(p *table.Port) { p.Generation++ })
			}}},
			from: "router", to: "client", about: "client:4000 > web:8080", at: "in wire", is: reason.NoTarget,
		},
	} {
		c.play(t)
	}
}

// TestICMPErrorCutShort: an error may quote as little as it likes: with the ports it is
// translated as far as it goes, without them it is dropped at a VIP or the kernel's.
func TestICMPErrorCutShort(t *testing.T) {
	for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP} {
		for _, family := range []int{4, 6} {
			w := newWorld(t, family, protocol)
			w.serve("vip", "web:8080")
			w.play(0, &opens)
			header := map[int]int{4: 20, 6: 40}[family]
			toClient, toWeb := w.quoted("client:4000 > web:8080", nil), w.quoted("vip:80 > client:4000", nil)
			for n := range len(toClient) + 1 {
				w.cut(n, n >= header+4, "web", "client", toClient[:n], reason.NotClaimed)
				w.cut(n, n >= header+4, "client", "vip", toWeb[:n], reason.ICMPError)
			}
		}
	}
}

func (w *world) cut(n int, known bool, from, to string, quoted []byte, unknown reason.Reason) {
	w.t.Helper()
	f := w.icmp(from, to, 3, 0, quoted)
	if w.family == 6 {
		f = w.icmp(from, to, 1, 0, quoted)
	}
	f.ICMPRest = 0
	b := append(make([]byte, 0, 2048), f.Bytes()...)
	r := w.pipeline.Process(w.snapshot, b, w.punt(&step{sends: from + ":0 > x"}), int64(w.clock), nil)
	want := unknown
	if known {
		want = reason.ICMPTranslated
	}
	if r.Reason != want {
		w.t.Errorf("v%d %s, %d bytes quoted: reason %s, want %s", w.family, packet.ProtocolName(w.protocol), n, r.Reason, want)
		return
	}
	if r.Verdict != Forward {
		return
	}
	if err := frame.Check(b[:r.Len]); err != nil {
		w.t.Errorf("v%d %s, %d bytes quoted: %v", w.family, packet.ProtocolName(w.protocol), n, err)
	}
	if len(b[:r.Len]) != len(f.Bytes()) {
		w.t.Errorf("v%d, %d bytes quoted: %d bytes leave, want %d", w.family, n, r.Len, len(f.Bytes()))
	}
}

// TestICMPErrorExtensions: objects behind the quoted packet (RFC 4884) stay as they are, and
// are not taken for a part of it.
func TestICMPErrorExtensions(t *testing.T) {
	objects := "\x20\x00\xab\xcd\x00\x08\x01\x01\x00\x01\x02\x03" // an MPLS label stack, its checksum is nobody's business
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, packet.ProtocolTCP)
		w.serve("vip", "web:8080")
		w.play(0, &opens)
		padded := func(b []byte) string { return string(append(b, make([]byte, 128-len(b))...)) + objects }
		typ, rest := uint8(11), uint32(128/4)<<16
		if family == 6 {
			typ, rest = 3, uint32(128/8)<<24
		}
		f := w.icmp("web", "client", typ, 0, []byte(padded(w.quoted("client:4000 > web:8080", nil))))
		f.ICMPRest = rest
		b := append(make([]byte, 0, 2048), f.Bytes()...)
		r := w.pipeline.Process(w.snapshot, b, w.punt(&step{sends: "web:0 > x"}), int64(w.clock), nil)
		want := w.icmp("vip", "client", typ, 0, []byte(padded(w.quoted("client:4000 > vip:80", nil))))
		want.ICMPRest, want.TTL = rest, 63
		got, err := frame.Decode(b[:r.Len])
		if r.Reason != reason.ICMPTranslated || err != nil || frame.Check(b[:r.Len]) != nil {
			t.Fatalf("v%d: reason %s, %v, %v", family, r.Reason, err, frame.Check(b[:r.Len]))
		}
		if d := frame.Diff(want, got); d != "" {
			t.Errorf("v%d (-want +got)\n%s", family, d)
		}
	}
}
