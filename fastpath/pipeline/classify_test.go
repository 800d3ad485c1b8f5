package pipeline

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

func multicast(family int) packet.Addr {
	if family == 4 {
		return packet.Addr4([4]byte{224, 0, 0, 1})
	}
	return packet.Addr{0: 0xff, 1: 0x02, 15: 1}
}

func multicastSource(f frame.Frame) string {
	if f.Src.Addr().Is4() {
		return "224.0.0.1:4000"
	}
	return "[ff02::1]:4000"
}

// into turns a frame into one of another transport protocol.
func into(protocol4, protocol6 uint8) func(*frame.Frame) {
	return func(f *frame.Frame) {
		src, dst, protocol := f.Src.Addr(), f.Dst.Addr(), protocol4
		if src.Is6() {
			protocol = protocol6
		}
		*f = frame.Raw(src.String(), dst.String(), protocol, "payload payload payload")
	}
}

func ping(f *frame.Frame) {
	typ := uint8(8)
	if f.Src.Addr().Is6() {
		typ = 128
	}
	*f = frame.ICMP(f.Src.Addr().String(), f.Dst.Addr().String(), typ, 0, "ping")
}

// timestamp is a request that some hosts answer; in IPv6 one that nobody has defined.
func timestamp(f *frame.Frame) {
	*f = frame.ICMP(f.Src.Addr().String(), f.Dst.Addr().String(), 13, 0, "timestamps..")
}

func firstFragment(f *frame.Frame) {
	f.More, f.ID, f.DF = true, 77, false
	f.Payload = make([]byte, 64-hdr(f))
}

// hdr is the length of the transport header, so that a fragment is a multiple of 8 bytes.
func hdr(f *frame.Frame) int {
	if f.Protocol == packet.ProtocolTCP {
		return 20
	}
	return 8
}

// TestClassify: what is not a plain packet of a protocol that Services have.
func TestClassify(t *testing.T) {
	given := serving("vip", "web:8080")
	dropped := func(sentence string, with func(*frame.Frame), is reason.Reason) scenario {
		return scenario{sentence: sentence, given: given, steps: []step{{sends: "client:4000 > vip:80", with: with, is: is}}}
	}
	passed := func(sentence string, with func(*frame.Frame)) scenario {
		return scenario{sentence: sentence, given: given,
			steps: []step{{sends: "client:4000 > other:80", with: with, is: reason.NotClaimed, becomes: "=", via: "stack client"}}}
	}
	play(t, []scenario{
		dropped("a ping to a VIP is not answered", ping, reason.Echo),
		dropped("nor is any other message to a VIP, if it is not about a flow", timestamp, reason.ICMPError),
		dropped("a protocol that no Service can have is dropped at a VIP", into(47, 47), reason.UnsupportedProtocol),
		passed("a fragment that is not addressed to a VIP is the kernel's", firstFragment),
		passed("a ping that is not addressed to a VIP is the kernel's", ping),
		passed("another protocol that is not addressed to a VIP is the kernel's", into(47, 47)),
		passed("traffic between pods is the kernel's", nil),
		{
			sentence: "traffic in a VLAN goes back to the stack, whose VLAN device is a port of its own",
			given:    given,
			steps: []step{{sends: "client:4000 > vip:80", with: func(f *frame.Frame) { f.Tagged, f.VLAN = true, 10 },
				is: reason.NotClaimed, becomes: "=", via: "stack client"}},
		},
		{
			sentence: "what the node's stack sends and no flow knows goes on its way",
			given:    given,
			steps: []step{
				{sends: "node:8080 > client:4000", at: "out client", is: reason.NotClaimed, becomes: "=", via: "resume client"},
				{sends: "node:8080 > outside:4000", at: "out wire", is: reason.NotClaimed, becomes: "=", via: "resume wire"},
				{sends: "node:4000 > vip:80", at: "out wire", is: reason.NotClaimed, becomes: "=", via: "resume wire"},
			},
		},
		{
			sentence: "what the node sends to an address in a service range that no Service has is dropped",
			given:    given,
			steps:    []step{{sends: "node:4000 > nobody:80", is: reason.UnallocatedVIP}},
		},
		{
			sentence: "padding behind a packet is not sent on",
			given:    given,
			steps: []step{{sends: "client:4000 > vip:80", with: func(f *frame.Frame) { f.Payload, f.Padding = nil, 6 },
				is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1}},
		},
		{
			sentence: "IPv4 options and IPv6 extension headers are carried along",
			given:    given,
			steps: []step{{sends: "client:4000 > vip:80", with: func(f *frame.Frame) {
				if f.Src.Addr().Is4() {
					f.Options = []byte{1, 1, 1, 0}
				} else {
					f.Extensions = []frame.Extension{{Type: 60, Body: make([]byte, 6)}}
				}
			}, is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1}},
		},
	})
}

// TestRouter: what a router checks.
func TestRouter(t *testing.T) {
	last := func(f *frame.Frame) { f.TTL = 1 }
	small := func(w *world) {
		w.serve("vip", "web:8080")
		w.port("web", func(p *table.Port) { p.MTU = 1400 })
	}
	play(t, []scenario{
		{
			sentence: "a packet at the end of its time to live is not routed, and registers nothing",
			given:    serving("vip", "web:8080"),
			steps: []step{
				{sends: "client:4000 > vip:80", with: last, is: reason.TimeExceeded, answer: true, becomes: "node", via: "direct client"},
				{sends: "web:8080 > client:4000", is: reason.NotClaimed, becomes: "=", via: "stack web"},
			},
		},
		{
			sentence: "what the node sends is not routed, so its time to live does not matter",
			given:    serving("vip", "web:8080"),
			steps:    []step{{sends: "node:4000 > vip:80", with: last, is: reason.NewFlow, becomes: "node:4000 > web:8080", via: "direct web"}},
		},
		{
			sentence: "what goes to the node is not routed either",
			given:    serving("vip", "node:8080"),
			steps:    []step{{sends: "client:4000 > vip:80", with: last, is: reason.NewFlow, becomes: "client:4000 > node:8080", via: "stack client"}},
		},
		{
			sentence: "a packet as long as the way out takes goes",
			given:    small,
			steps:    []step{{sends: "client:4000 > vip:80", with: sized(1400), is: reason.NewFlow, becomes: "client:4000 > web:8080", via: "direct web", ttl: -1}},
		},
		{
			sentence: "a packet longer than the way out takes, and not to be cut, is not sent on, and its sender told",
			given:    small,
			steps: steps(opens,
				step{sends: "client:4000 > vip:80", with: sized(1401), is: reason.PacketTooBig, answer: true, becomes: "node", mtu: 1400, via: "direct client"},
				step{sends: "client:4001 > vip:80", flags: syn, with: sized(1401), is: reason.PacketTooBig, answer: true, becomes: "node", mtu: 1400, via: "direct client"}),
		},
		{
			sentence: "the node's own stack has no size limit",
			given: func(w *world) {
				w.serve("vip", "node:8080")
				w.port("node", func(p *table.Port) { p.MTU = 100 })
			},
			steps: []step{{sends: "client:4000 > vip:80", with: sized(1401), is: reason.NewFlow, becomes: "client:4000 > node:8080", via: "stack client"}},
		},
	})
}

// TestSourceCheck: nothing is registered or answered for a source that lives elsewhere.
func TestSourceCheck(t *testing.T) {
	given := serving("vip", "web:8080")
	spoofed := func(sentence, sends, at string) scenario {
		return scenario{sentence: sentence, given: given, steps: []step{
			{sends: sends + ":4000 > vip:80", at: at, is: reason.SpoofedSource},
			{sends: sends + ":4000 > vip:22", at: at, is: reason.SpoofedSource},
		}}
	}
	play(t, []scenario{
		spoofed("a pod with another pod's address", "other", "in client"),
		spoofed("a pod with the node's address", "node", "in client"),
		spoofed("a pod with an address of nobody on this node", "outside", "in client"),
		spoofed("a pod with a VIP as its address", "vip", "in client"),
		spoofed("the wire with a pod's address", "client", "in wire"),
		spoofed("the wire with the node's address", "node", "in wire"),
		spoofed("the node with a pod's address", "client", "in node"),
		spoofed("the node with an address of nobody on this node", "outside", "in node"),
	})
}

// TestFullTables: a full table refuses the new by name and leaves the old alone.
func TestFullTables(t *testing.T) {
	var more []step
	for _, port := range []string{"4001", "4002", "4003"} {
		more = append(more, step{sends: "client:" + port + " > vip:80", flags: syn, is: reason.NewFlow,
			becomes: "client:" + port + " > web:8080", via: "direct web", ttl: -1})
	}
	play(t, []scenario{
		{
			sentence: "with the flow table full a new flow is dropped and the others go on",
			given:    tiny,
			steps: steps(opens,
				step{then: crowd, sends: "client:4005 > vip:80", flags: syn, is: reason.FlowTableFull}, speaks, answers),
		},
		{
			sentence: "with the flow table full of closed connections a new one takes the place of the oldest",
			over:     onlyTCP,
			given:    tiny,
			steps: steps(step{then: crowdClosed}, step{then: later(2 * time.Second)},
				step{sends: "client:4005 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4005 > web:8080", via: "direct web", ttl: -1}),
		},
		{
			sentence: "with too many connections half-open, all of them young, the next is dropped and the others go on",
			over:     onlyTCP,
			given: func(w *world) {
				w.serve("vip", "web:8080")
				w.flows.SetHalfOpenMax(4)
			},
			steps: steps(opens, more,
				step{sends: "client:4005 > vip:80", flags: syn, is: reason.HalfOpenFull}, accepts, speaks),
		},
	})
}

// tiny is a node with a flow table of the smallest size and one Service.
func tiny(w *world) {
	flows, err := conntrack.New(1 + conntrack.BucketSlots)
	if err != nil {
		w.t.Fatal(err)
	}
	flows.SetHalfOpenMax(flows.Cap())
	w.flows, w.pipeline = flows, New(Config{Flows: flows})
	w.serve("vip", "web:8080")
}

// crowd registers flows of somebody else until every slot is taken.
func crowd(w *world) { w.crowd(packet.ProtocolUDP, 0) }

// crowdClosed does the same with connections that both ends have closed.
func crowdClosed(w *world) {
	w.crowd(packet.ProtocolTCP, conntrack.StateSYN|conntrack.StateACK|conntrack.StateFIN)
}

func (w *world) crowd(protocol uint8, state conntrack.State) {
	for port := uint16(1); w.flows.Len() < w.flows.Cap(); port++ {
		if port == 0 {
			w.t.Fatalf("%d flows of %d fit in", w.flows.Len(), w.flows.Cap())
		}
		t := nat.Translation{
			Client: conntrack.Tuple{Src: packet.Addr4([4]byte{192, 0, 2, 1}), SrcPort: port,
				Dst: packet.Addr4([4]byte{198, 51, 100, 1}), DstPort: 53, Protocol: protocol},
			Backend: packet.Addr4([4]byte{198, 51, 100, 2}), BackendPort: port,
			Source: packet.Addr4([4]byte{192, 0, 2, 1}), SourcePort: port,
		}
		var fwd, rev conntrack.Flow
		t.Make(&fwd, &rev)
		fwd.State, rev.State = state, state
		w.flows.Insert(&fwd, &rev, conntrack.Tick(int64(w.clock)))
	}
}

// TestTables: packets that the tables cannot place.
func TestTables(t *testing.T) {
	play(t, []scenario{
		{
			sentence: "a packet met at a port that the tables do not have",
			given:    serving("vip", "web:8080"),
			steps:    []step{{sends: "client:4000 > vip:80", at: "in ghost", is: reason.UnknownPortID}},
		},
		{
			sentence: "a packet before the first tables",
			given:    func(w *world) { w.snapshot = nil },
			steps:    []step{{sends: "client:4000 > vip:80", is: reason.NoSnapshot}},
		},
	})
}
