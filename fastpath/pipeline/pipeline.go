package pipeline

import (
	"math/rand/v2"

	"lace-cni.io/lace/fastpath/affinity"
	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/fragment"
	"lace-cni.io/lace/fastpath/lane"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// Config says what a Pipeline works on.
type Config struct {
	// Flows is the flow table, shared by every worker of the node.
	Flows *conntrack.Table
	// Affinity remembers the clients of frontends that ask for it, for every worker of the
	// node. Nil: nobody is remembered.
	Affinity *affinity.Table
	// Fragments is the table of fragmented datagrams, shared by every worker of the node.
	// Nil: a small one of the pipeline's own.
	Fragments *fragment.Table
	// Rand chooses backends and source ports. It must not be shared. Nil: a generator
	// seeded by the system.
	Rand *rand.Rand
}

// Pipeline decides for one worker. It is not safe for concurrent use.
type Pipeline struct {
	flows     *conntrack.Table
	fragments *fragment.Table
	rand      *rand.Rand
	ports     nat.Ports
	limit     limit
	lane      *lane.Lane

	fate     fragment.Fate     // of the datagram in hand
	released fragment.Released // fragments that waited for the one in hand
	lost     fragment.Losses
	cut      cut   // fragments of the packet in hand, which did not fit its way out
	forgot   int64 // when unfinished datagrams were looked for last

	source  packet.Addr // of the flow that is looking for a source port
	clients *affinity.Table
	client  affinity.Key // of the packet in hand, where it is asked for

	holes    blackhole.Watch
	visit    visit
	quote    packet.Quote   // of the ICMP error in hand
	flow     conntrack.Flow // the direction of the packet in hand
	peer     conntrack.Flow // the other direction of the same flow
	old      conntrack.Flow // what flow was before it got another backend
	gone     func(*conntrack.Flow) bool
	sweeping *table.Snapshot
	scratch  [packet.MaxAnswer]byte
}

// New makes the pipeline of one worker.
func New(c Config) *Pipeline {
	pl := &Pipeline{flows: c.Flows, clients: c.Affinity, fragments: c.Fragments, rand: c.Rand, lane: lane.New(c.Flows)}
	if pl.fragments == nil {
		pl.fragments, _ = fragment.New(fragment.Small) // whose bounds make sense
	}
	if pl.rand == nil {
		pl.rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	pl.gone, pl.ports.Taken = pl.frontendGone, pl.nodePort
	return pl
}

// visit is one packet's stay in the pipeline.
type visit struct {
	tables *table.Snapshot
	in     *table.Port // the port on which the packet was met
	punt   packet.Punt
	trace  *Trace
	frame  []byte
	ns     int64  // now, monotonic
	tick   uint32 // now, in the flow table's unit
	how    packet.Inject
	out    *table.Port // the port that how speaks of
	back   *table.Port // where replies of a new flow leave for the client
	stack  bool        // the node's stack routes the new flow
	length int         // of the frame that leaves
	packet packet.Packet
	tuple  conntrack.Tuple // of the packet, once it is known to have ports
	held   bool            // the frame waits for the first fragment of its datagram
	cuts   bool            // the packet is to be cut for its way out
}

// Process decides about one frame that was punted. It rewrites the frame in place or
// writes the answer over it; the frame's capacity is the room for answers. now is in
// nanoseconds of CLOCK_MONOTONIC. tables may be nil: every packet is dropped as
// no-snapshot. trace is nil, or collects the steps. It never fails: what cannot be done
// is a reason.
func (pl *Pipeline) Process(tables *table.Snapshot, frame []byte, punt packet.Punt, now int64, trace *Trace) (r Result) {
	pl.Abandon() // what the caller did not ask for
	pl.enterWith(tables, frame, punt, now, trace)
	return pl.result(pl.decide())
}

// enterWith takes a frame in hand.
func (pl *Pipeline) enterWith(tables *table.Snapshot, frame []byte, punt packet.Punt, now int64, trace *Trace) {
	v := &pl.visit
	v.tables, v.punt, v.frame, v.trace, v.held, v.cuts = tables, punt, frame, trace, false, false
	v.out = nil // the last packet's, perhaps of tables that are gone
	v.ns, v.tick = now, conntrack.Tick(now)
}

// result is what the caller gets to know of the decision.
func (pl *Pipeline) result(decision reason.Reason) (r Result) {
	v := &pl.visit
	if v.held {
		return Result{Verdict: Hold}
	}
	lost := v.loss(decision)
	r.Reason = pl.conclude(decision)
	pl.lose(r.Reason, &lost)
	r.Verdict = verdictOf(r.Reason)
	r.More = pl.more()
	if r.Verdict != Drop {
		r.Inject, r.Port, r.Len = v.how, v.out.ID, v.length
	}
	v.trace.verdict(r.Reason)
	return r
}

// Settle ends a round of the worker, when what it has received has been sent: flows that
// waited for that are handed over to the kernel. drained says that the worker has
// received everything there was. It returns how many flows were handed over since the
// last call. now as for Process.
func (pl *Pipeline) Settle(drained bool, now int64) (installed int) {
	pl.lane.Settle(drained, now)
	return pl.lane.Installed()
}

// decide is the order of the steps. A step that settles the packet returns its reason;
// None means that the next step has to.
func (pl *Pipeline) decide() reason.Reason {
	v := &pl.visit
	if r := v.enter(); r != reason.None {
		return r
	}
	if v.punt.Cut {
		return pl.oversize()
	}
	o := v.parse()
	if v.packet.Fragment {
		return pl.fragment(o)
	}
	return pl.whole(o)
}

// whole goes on with a packet that may have ports: a whole one, or a first fragment.
func (pl *Pipeline) whole(o packet.Outcome) reason.Reason {
	v := &pl.visit
	if r := pl.classify(o); r != reason.None {
		return r
	}
	if pl.track() {
		return pl.follow()
	}
	if v.punt.Egress {
		// The claim program found the flow, which has ended since.
		return reason.NotClaimed
	}
	frontend := v.tables.Frontend(v.in.Network, &v.packet.Dst, v.packet.Protocol, v.packet.DstPort)
	if frontend != nil && frontend.AliasOf != 0 && v.in.Kind != table.PortHost {
		frontend = nil // of the node's own sockets alone
	}
	if frontend == nil && !v.toVIP() {
		return v.unclaimed()
	}
	if v.spoofed() {
		return reason.SpoofedSource
	}
	if frontend == nil {
		v.trace.note("frontend", "the address is a VIP, but it has no such port")
		return reason.UnknownPort
	}
	return pl.open(frontend)
}

// enter finds the port on which the packet was met.
func (v *visit) enter() reason.Reason {
	if v.tables == nil {
		return reason.NoSnapshot
	}
	v.in = v.tables.Port(v.punt.Port)
	v.trace.port(v.in, v.punt)
	if v.in == nil {
		return reason.UnknownPortID
	}
	return reason.None
}

func (v *visit) parse() packet.Outcome {
	o := v.packet.Parse(v.frame)
	v.trace.parsed(&v.packet, o)
	return o
}

// fromHost reports whether the node's own stack sent the packet.
func (v *visit) fromHost() bool { return v.in.Kind == table.PortHost || v.punt.Egress }

// outside reports whether the client is outside the cluster. Other nodes and their pods
// resolve VIPs where they are, so a packet to a VIP on the wire is somebody else's.
func (v *visit) outside() bool { return v.in.Kind == table.PortUplink && !v.punt.Egress }
