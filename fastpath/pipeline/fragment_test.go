package pipeline

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/fragment"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
)

// pieces is one sentence about a datagram that comes in pieces, in both families.
type pieces struct {
	sentence string
	protocol uint8 // 0: UDP
	families []int // nil: both
	given    func(*world)
	before   []step // packets before it
	sends    string // as in step
	at       string // as in step
	// comes says in which order its fragments come, and what becomes of each: "1:held
	// 0:new-flow+established" is the second one, which is held, and the first one, behind
	// which the second leaves. Other words: "wait" lets fragment.Lifetime pass,
	// "lost:REASON=N" are held fragments dropped since the last look, "then" does what then says.
	comes string
	then  func(*world)
	// extra are fragments besides those of the datagram, numbered from the end.
	extra   func(whole []byte) [][]byte
	becomes string // all that left put together; "": does not come together; "=" what came
	via     string
	answer  bool // what leaves first is an answer
}

func (c *pieces) frame(w *world) []byte {
	src, dst, _ := strings.Cut(c.sends, " > ")
	from, to := w.endpoint(src).String(), w.endpoint(dst).String()
	payload := strings.Repeat("0123456789", 200)
	switch c.protocol {
	case packet.ProtocolTCP:
		segment := frame.TCP(from, to, syn, payload)
		segment.DF = false
		return segment.Bytes()
	case packet.ProtocolSCTP:
		return frame.SCTP(from, to, "\x01\x00\x07\xd0"+payload[4:]).Bytes()
	case packet.ProtocolICMP:
		ping := frame.ICMP(w.endpoint(src).Addr().String(), w.endpoint(dst).Addr().String(), 8, 0, payload)
		if w.family == 6 {
			ping.ICMPType = 128
		}
		return ping.Bytes()
	}
	return frame.UDP(from, to, payload).Bytes()
}

// left is a frame that left, as it was then.
type left struct {
	bytes []byte
	via   string
}

// arrive lets a fragment come, and returns what became of it and of those behind it.
func (w *world) arrive(b []byte, punt packet.Punt) (words string, out []left) {
	w.clock += time.Millisecond
	room := append(make([]byte, 0, 4096), b...)
	r := w.pipeline.Process(w.snapshot, room, punt, int64(w.clock), nil)
	note := func(r Result, frame []byte) {
		word := r.Reason.String()
		if r.Verdict == Hold {
			word = "held"
		} else {
			met.Lock()
			met.reasons[r.Reason] = true
			met.Unlock()
		}
		if words != "" {
			words += "+"
		}
		words += word
		if r.Verdict != Drop && r.Verdict != Hold {
			out = append(out, left{slices.Clone(frame[:r.Len]), fmt.Sprintf("%s %s", injectNames[r.Inject], portNameOf(r.Port))})
		}
	}
	note(r, room)
	for r.More {
		room = make([]byte, 0, 4096)
		_, r = w.pipeline.Next(w.snapshot, room, int64(w.clock), nil)
		note(r, room[:cap(room)])
	}
	return words, out
}

func (w *world) lost() (s []string) {
	w.pipeline.Lost(int64(w.clock), func(r reason.Reason, frames, bytes int) {
		met.Lock()
		met.reasons[r] = true
		met.Unlock()
		s = append(s, fmt.Sprintf("lost:%s=%d", r, frames))
		if bytes < frames*(packet.EthernetLen+packet.IPv4Len) {
			w.t.Errorf("%d fragments of %d bytes lost", frames, bytes)
		}
	})
	return s
}

func (c *pieces) play(t *testing.T, family int) {
	protocol := c.protocol
	if protocol == 0 || protocol == packet.ProtocolICMP {
		protocol = packet.ProtocolUDP
	}
	w := newWorld(t, family, protocol)
	if c.given != nil {
		c.given(w)
	}
	for i := range c.before {
		w.play(i, &c.before[i])
	}
	whole := c.frame(w)
	all := frame.Cut(whole, 77, 776)
	if c.extra != nil {
		all = append(all, c.extra(whole)...)
	}
	punt := w.punt(&step{sends: c.sends, at: c.at})
	var out []left
	for _, word := range strings.Fields(c.comes) {
		what, want, _ := strings.Cut(word, ":")
		switch what {
		case "then":
			c.then(w)
			continue
		case "wait":
			w.clock += fragment.Lifetime + time.Second
			continue
		case "lost":
			if got := strings.Join(w.lost(), " "); got != word {
				t.Errorf("%s: %q", word, got)
			}
			continue
		}
		var i int
		if _, err := fmt.Sscan(what, &i); err != nil || i >= len(all) {
			t.Fatalf("%q is no fragment of %d", what, len(all))
		}
		got, sent := w.arrive(all[i], punt)
		if got != want {
			t.Fatalf("fragment %d: %s, want %s", i, got, want)
		}
		out = append(out, sent...)
	}
	c.check(w, whole, out)
}

// check puts together what left.
func (c *pieces) check(w *world, whole []byte, out []left) {
	w.t.Helper()
	if c.answer {
		if len(out) != 1 || out[0].via != c.via || frame.Check(out[0].bytes) != nil {
			w.t.Errorf("%d frames left, want one answer", len(out))
		}
		return
	}
	var parts []frame.Part
	for _, o := range out {
		if o.via != c.via {
			w.t.Errorf("a fragment left %s, want %s", o.via, c.via)
		}
		p, err := frame.ReadPart(o.bytes)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(parts) > 0 && p.Of != parts[0].Of {
			w.t.Fatalf("fragments of one datagram left as %v and %v", parts[0].Of, p.Of)
		}
		if err := frame.Check(o.bytes); err != nil {
			w.t.Error(err)
		}
		parts = append(parts, p)
	}
	joined, err := frame.Join(parts)
	if c.becomes == "" {
		if err == nil {
			w.t.Errorf("the datagram left whole: %x", joined[:64])
		}
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if err := frame.Check(joined); err != nil {
		w.t.Errorf("what left does not come together: %v", err)
	}
	got, _ := frame.Decode(joined)
	want, _ := frame.Decode(whole)
	if c.becomes != "=" {
		src, dst, _ := strings.Cut(c.becomes, " > ")
		want.Dst = w.endpoint(dst)
		if name, any := strings.CutSuffix(src, ":*"); any {
			want.Src = netip.AddrPortFrom(w.addr(name), got.Src.Port())
		} else {
			want.Src = w.endpoint(src)
		}
		if strings.HasPrefix(c.via, "direct") && !strings.HasPrefix(c.sends, "node") && !strings.HasSuffix(c.via, "node") {
			want.TTL--
		}
	}
	want.ID = got.ID
	if d := frame.Diff(want, got); d != "" {
		w.t.Errorf("what left differs (-want +got):\n%s", d)
	}
}

var talking = []step{
	{sends: "client:4000 > vip:80", is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1},
}

// TestFragments: fragments follow the first one of their datagram.
func TestFragments(t *testing.T) {
	web := serving("vip", "web:8080")
	over := func(from, to int, more bool) func([]byte) [][]byte {
		return func(whole []byte) [][]byte { return [][]byte{frame.Piece(whole, 77, from, to, more)} }
	}
	const client, toWeb = "client:4000 > vip:80", "client:4000 > web:8080"
	for _, c := range []pieces{
		{sentence: "in order: the first one opens the flow and the others follow",
			given: web, sends: client, comes: "0:new-flow 1:established 2:established", becomes: toWeb, via: "direct web"},
		{sentence: "of a TCP segment",
			protocol: packet.ProtocolTCP, given: web, sends: client, comes: "0:new-flow 1:established 2:established", becomes: toWeb, via: "direct web"},
		{sentence: "the last one first: those that came early leave behind the first one",
			given: web, sends: client, comes: "2:held 1:held 0:new-flow+established+established", becomes: toWeb, via: "direct web"},
		{sentence: "the first one in the middle",
			given: web, sends: client, comes: "1:held 0:new-flow+established 2:established", becomes: toWeb, via: "direct web"},
		{sentence: "of a flow that is known",
			given: web, before: talking, sends: client, comes: "1:held 0:established+established 2:established", becomes: toWeb, via: "direct web"},
		{sentence: "of a reply",
			given: web, before: talking, sends: "web:8080 > client:4000", comes: "1:held 0:reply+reply 2:reply", becomes: "vip:80 > client:4000", via: "direct client"},
		{sentence: "from outside to another node's backend, in the node's name",
			given: serving("vip", "remote:8080"), sends: "outside:4000 > vip:80", comes: "2:held 0:new-flow+established 1:established",
			becomes: "node:* > remote:8080", via: "direct wire"},
		{sentence: "of the reply to that",
			given: serving("vip", "remote:8080"),
			before: []step{{sends: "outside:4000 > vip:80", with: sourcePort(40000), then: fixedPort(30000),
				is: reason.NewFlow, becomes: "node:30000 > remote:8080", via: "direct wire", ttl: -1}},
			sends: "remote:8080 > node:30000", comes: "1:held 0:reply+reply 2:reply", becomes: "vip:80 > outside:40000", via: "direct wire"},
		{sentence: "from outside to a pod on this node, in the client's name",
			given: web, sends: "outside:4000 > vip:80", comes: "0:new-flow 2:established 1:established", becomes: "outside:4000 > web:8080", via: "direct web"},
		{sentence: "from the node to a pod",
			given: web, sends: "node:4000 > vip:80", comes: "1:held 0:new-flow+established 2:established", becomes: "node:4000 > web:8080", via: "direct web"},
		{sentence: "to a backend in the node's own stack: they go on where they came in",
			given: serving("vip", "node:8080"), sends: client, comes: "1:held 0:new-flow+established 2:established", becomes: "client:4000 > node:8080", via: "stack client"},
		{sentence: "of its reply, met on its way out to the client",
			given: serving("vip", "node:8080"), before: []step{{sends: client, is: reason.NewFlow, becomes: "client:4000 > node:8080", via: "stack client"}},
			sends: "node:8080 > client:4000", at: "out client", comes: "2:held 0:reply+reply 1:reply", becomes: "vip:80 > client:4000", via: "direct client"},
		{sentence: "from a pod to itself through a VIP",
			given: serving("vip", "client:8080"), sends: client, comes: "1:held 0:new-flow+established 2:established", becomes: "vip:4000 > client:8080", via: "direct client"},
		{sentence: "from the node to itself through a VIP",
			given: serving("vip", "node:8080"), sends: "node:4000 > vip:80", comes: "1:held 0:new-flow+established 2:established", becomes: "vip:4000 > node:8080", via: "direct node"},

		{sentence: "of an SCTP packet whose Service has its backend's port follow: the checksum covers no address",
			protocol: packet.ProtocolSCTP, given: serving("vip", "web:80"), sends: client, comes: "1:held 0:new-flow+established 2:established",
			becomes: "client:4000 > web:80", via: "direct web"},
		{sentence: "of an SCTP packet whose Service has another port are dropped: the checksum covers what has not come yet",
			protocol: packet.ProtocolSCTP, given: web, sends: client, comes: "1:held 0:malformed lost:fragment=1 2:fragment"},
		{sentence: "of an SCTP packet whose source port is rewritten are dropped, too",
			protocol: packet.ProtocolSCTP, given: serving("vip", "remote:80"), sends: "outside:4000 > vip:80", comes: "0:malformed 1:fragment 2:fragment"},

		{sentence: "that are nobody's are given back, those that came early too",
			given: web, sends: "web:9999 > client:4000", comes: "1:held 0:not-claimed+not-claimed 2:not-claimed", becomes: "=", via: "stack web"},
		{sentence: "that are nobody's and left the node's stack go on",
			given: web, sends: "web:9999 > client:4000", at: "out client", comes: "1:held 0:not-claimed+not-claimed 2:not-claimed", becomes: "=", via: "resume client"},
		{sentence: "of a protocol without ports that are not for a VIP are given back at once",
			protocol: packet.ProtocolICMP, given: web, sends: "web:0 > client:0", comes: "1:not-claimed 0:not-claimed 2:not-claimed", becomes: "=", via: "stack web"},
		{sentence: "of a protocol without ports to a VIP are dropped",
			protocol: packet.ProtocolICMP, given: web, sends: "client:0 > vip:0", comes: "1:icmp 0:icmp 2:icmp"},
		{sentence: "that the node sends to an address in a service range that no Service has",
			given: web, sends: "node:4000 > nobody:80", comes: "1:held 0:unallocated-vip 2:fragment lost:fragment=1"},

		{sentence: "exact duplicates are dropped, before and behind the first one, and do no harm",
			given: web, sends: client, comes: "1:held 1:fragment-duplicate 0:new-flow+established 0:fragment-duplicate 1:fragment-duplicate 2:established", becomes: toWeb, via: "direct web"},
		{sentence: "a fragment that overlaps spoils the datagram, and what comes later is dropped",
			given: web, sends: client, extra: over(8, 32, true), comes: "0:new-flow 3:fragment-overlap 1:fragment-overlap 2:fragment-overlap", via: "direct web"},
		{sentence: "a fragment that reaches into the one behind it spoils the datagram",
			given: web, sends: client, extra: over(0, 2000, true), comes: "1:held 3:fragment-overlap lost:fragment-overlap=1 0:fragment-overlap 2:fragment-overlap"},
		{sentence: "a part of what has come is an overlap, not a duplicate",
			given: web, sends: client, extra: over(760, 768, true), comes: "1:held 3:fragment-overlap lost:fragment-overlap=1 0:fragment-overlap"},
		{sentence: "the same bytes, once as the last ones and once not, are a contradiction",
			given: web, sends: client, extra: func(whole []byte) [][]byte {
				n := sizeOf(whole)
				return [][]byte{frame.Piece(whole, 77, n, 2*n, false)}
			}, comes: "0:new-flow 1:established 3:fragment-overlap 2:fragment-overlap", via: "direct web"},
		{sentence: "bytes behind the last one are a contradiction",
			given: web, sends: client, extra: over(4000, 4008, true), comes: "0:new-flow 2:established 3:fragment-overlap 1:fragment-overlap", via: "direct web"},
		{sentence: "a second end is a contradiction",
			given: web, sends: client, extra: over(4000, 4003, false), comes: "2:held 3:fragment-overlap lost:fragment-overlap=1 0:fragment-overlap"},
		{sentence: "another first fragment of the same length is a contradiction",
			given: web, sends: client, extra: func(whole []byte) [][]byte {
				other := slices.Clone(whole)
				other[len(whole)-2008+1]++ // source port
				return [][]byte{frame.Piece(other, 77, 0, sizeOf(whole), true)}
			}, comes: "0:new-flow 3:fragment-overlap 1:fragment-overlap", via: "direct web"},
		{sentence: "a spoilt datagram is forgotten in time, and its identification is free again",
			given: web, sends: client, extra: over(8, 32, true), comes: "1:held 3:held 0:fragment-overlap lost:fragment-overlap=2 wait 0:new-flow 1:established 2:established", becomes: toWeb, via: "direct web"},

		{sentence: "whose first one does not come are dropped in time",
			given: web, sends: client, comes: "1:held 2:held wait lost:fragment-timeout=2"},
		{sentence: "whose first one comes too late: it goes, they do not",
			given: web, sends: client, comes: "1:held wait 0:new-flow lost:fragment-timeout=1 2:established", via: "direct web"},
		{sentence: "a first fragment that does not hold its transport header takes all with it",
			given: web, sends: client, protocol: packet.ProtocolTCP, extra: over(0, 16, true), comes: "1:held 3:fragment-tiny lost:fragment-tiny=1 0:fragment-tiny 2:fragment-tiny"},
		{sentence: "a fragment in the middle whose length is no multiple of eight",
			given: web, sends: client, extra: over(0, 33, true), comes: "3:malformed"},
		{sentence: "a fragment without a byte",
			given: web, sends: client, extra: over(744, 744, false), comes: "3:malformed"},
		{sentence: "a fragment that ends behind the longest packet",
			given: web, sends: client, extra: over(65528, 65544, false), comes: "0:new-flow 3:malformed", via: "direct web"},

		{sentence: "of a datagram that is refused are dropped behind the answer",
			given: web, sends: "client:4000 > vip:81", comes: "1:held 0:unknown-port 2:fragment lost:fragment=1", answer: true, via: "direct client"},
		{sentence: "with a source that does not live behind the port are dropped with the first one",
			given: web, sends: client, at: "in other", comes: "1:held 0:spoofed-source 2:fragment lost:fragment=1"},
		{sentence: "too long for the way out: routers cut none of IPv6",
			given: and(web, narrow("web", 700)), families: []int{6},
			sends: client, comes: "1:held 0:packet-too-big 2:fragment lost:fragment=1", answer: true, via: "direct client"},
		{sentence: "too long for the way out by themselves: the sender cannot be told by later ones",
			given: web, families: []int{6}, sends: client, comes: "0:new-flow then 1:too-big", via: "direct web", then: narrow("web", 700)},
		{sentence: "too long for the way out are cut again",
			given: and(web, narrow("web", 700)), families: []int{4},
			sends: client, comes: "0:new-flow+cut 1:established+cut 2:established", becomes: toWeb, via: "direct web"},
		{sentence: "too long for the way out are cut again, those that were held too",
			given: and(web, narrow("web", 700)), families: []int{4},
			sends: client, comes: "2:held 1:held 0:new-flow+cut+established+established+cut", becomes: toWeb, via: "direct web"},
		{sentence: "of which later ones only are too long for the way out by now",
			given: web, families: []int{4}, sends: client, comes: "0:new-flow then 1:established+cut 2:established", becomes: toWeb, via: "direct web", then: narrow("web", 700)},
	} {
		families := c.families
		if families == nil {
			families = []int{4, 6}
		}
		for _, family := range families {
			t.Run(fmt.Sprintf("%s/v%d", c.sentence, family), func(t *testing.T) { c.play(t, family) })
		}
	}
}

// TestHeldPiecesAreAbandoned: fragments that were held for the first one are dropped by name when
// nobody asks for them, or has no room for them, and do not get among the next packet's.
func TestHeldPiecesAreAbandoned(t *testing.T) {
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, packet.ProtocolUDP)
		w.serve("vip", "web:8080")
		c := pieces{sends: "client:4000 > vip:80"}
		punt := w.punt(&step{sends: c.sends})
		process := func(b []byte) Result {
			return w.pipeline.Process(w.snapshot, append(make([]byte, 0, 4096), b...), punt, int64(w.clock), nil)
		}
		begin := func(id uint32) Result {
			all := frame.Cut(c.frame(w), id, 776)
			for i := len(all) - 1; i > 0; i-- {
				if r := process(all[i]); r.Verdict != Hold {
					t.Fatalf("v%d: %+v of a fragment that comes before the first", family, r)
				}
			}
			return process(all[0])
		}
		if r := begin(1); r.Reason != reason.NewFlow || !r.More {
			t.Fatalf("v%d: %+v of the first fragment", family, r)
		}
		f := w.frame(0, &step{sends: c.sends})
		if r := process(f.Bytes()); r.Reason != reason.Established || r.More {
			t.Errorf("v%d: %+v of a packet that nothing was held for", family, r)
		}
		if got := strings.Join(w.lost(), " "); got != "lost:ring-full=2" {
			t.Errorf("v%d: %q, want both held fragments", family, got)
		}
		begin(2)
		if length, r := w.pipeline.Next(w.snapshot, make([]byte, 0, 100), int64(w.clock), nil); length <= 100 || r.Verdict != Drop || r.Reason != reason.TooBig || !r.More {
			t.Errorf("v%d: %d bytes, %+v of a held fragment without room", family, length, r)
		}
		if _, r := w.pipeline.Next(w.snapshot, make([]byte, 0, 4096), int64(w.clock), nil); r.Reason != reason.Established || r.More {
			t.Errorf("v%d: %+v of the last held fragment", family, r)
		}
	}
}

// TestTooManyPieces: a datagram cut finer than any path does is given up, and another one of
// the same port is not.
func TestTooManyPieces(t *testing.T) {
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, packet.ProtocolUDP)
		w.serve("vip", "web:8080")
		c := pieces{sends: "client:4000 > vip:80"}
		whole, punt := c.frame(w), w.punt(&step{sends: c.sends})
		other := frame.Cut(whole, 78, 776)
		w.arrive(other[1], punt)
		for i := range fragment.MaxPieces {
			if got, _ := w.arrive(frame.Piece(whole, 77, 8*i, 8*i+8, true), punt); got != "new-flow" && got != "established" {
				t.Fatalf("v%d: fragment %d: %s", family, i, got)
			}
		}
		for range 2 {
			if got, _ := w.arrive(frame.Piece(whole, 77, 1600, 1608, true), punt); got != "fragment-table-full" {
				t.Errorf("v%d: one more: %s", family, got)
			}
		}
		if got, _ := w.arrive(other[0], punt); got != "established+established" {
			t.Errorf("v%d: the other datagram: %s", family, got)
		}
	}
}

// sizeOf is the payload of a fragment in a packet of 776 bytes.
func sizeOf(whole []byte) int {
	if whole[12] == 0x08 {
		return (776 - 20) &^ 7
	}
	return (776 - 48) &^ 7
}

// fixedPort leaves one port for flows whose source is rewritten.
func fixedPort(port uint16) func(*world) {
	return func(w *world) {
		w.contents.Settings.SourcePortFirst, w.contents.Settings.SourcePortLast = port, port
		w.publish()
	}
}
