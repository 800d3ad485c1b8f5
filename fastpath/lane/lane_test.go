package lane

import (
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

const (
	synAck = packet.FlagSYN | packet.FlagACK
	ack    = packet.FlagACK
	fin    = packet.FlagFIN | packet.FlagACK
	rst    = packet.FlagRST | packet.FlagACK

	start    = int64(1e12)
	nextTick = int64(1) << conntrack.TickShift
)

// node is a flow table and the lane of one worker.
type node struct {
	t     testing.TB
	flows *conntrack.Table
	lane  *Lane
	now   int64
}

func newNode(t testing.TB) *node {
	flows, err := conntrack.New(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	return &node{t: t, flows: flows, lane: New(flows), now: start}
}

// flow is one that Go has registered.
type flow struct {
	protocol          uint8
	port              uint16 // of the client
	frontend, backend uint32
}

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

func (f flow) tuple(reply bool) conntrack.Tuple {
	client, vip, backend := addr("10.244.1.2"), addr("10.96.0.10"), addr("10.244.1.3")
	if reply {
		return conntrack.Tuple{Src: backend, Dst: client, SrcPort: 8080, DstPort: f.port, Protocol: f.protocol}
	}
	return conntrack.Tuple{Src: client, Dst: vip, SrcPort: f.port, DstPort: 80, Protocol: f.protocol}
}

func (n *node) register(f flow) { n.enter(f, false, false) }

// begin registers a flow as the pipeline does while the lane is on.
func (n *node) begin(f flow, near bool) { n.enter(f, true, near) }

func (n *node) enter(f flow, begins, near bool) {
	n.t.Helper()
	fwd, rev := conntrack.Flow{Tuple: f.tuple(false)}, conntrack.Flow{Tuple: f.tuple(true)}
	fwd.Rewrite = conntrack.Rewrite{Src: fwd.Src, Dst: rev.Src, SrcPort: f.port, DstPort: 8080}
	rev.Rewrite = conntrack.Rewrite{Src: fwd.Dst, Dst: fwd.Src, SrcPort: 80, DstPort: f.port}
	fwd.Frontend, fwd.Backend, rev.Frontend, rev.Backend = f.frontend, f.backend, f.frontend, f.backend
	if begins {
		n.lane.Begin(&fwd, &rev, f.protocol, near)
	}
	if r := n.flows.Insert(&fwd, &rev, conntrack.Tick(n.now)); r != conntrack.Inserted {
		n.t.Fatalf("not registered: %v", r)
	}
	if begins {
		n.lane.Begun(&fwd)
	}
}

func (n *node) find(f flow, reply bool) (out conntrack.Flow) {
	n.t.Helper()
	tuple := f.tuple(reply)
	if !n.flows.Lookup(&tuple, &out) {
		n.t.Fatal("the flow is gone")
	}
	return out
}

// meet is a packet of the flow that Go forwards.
func (n *node) meet(f flow, reply bool, flags uint8) {
	n.t.Helper()
	found := n.find(f, reply)
	n.lane.Offer(&found, flags, n.now)
	n.flows.Touch(&found, conntrack.StateOf(flags), conntrack.Tick(n.now))
}

// mode is that of both directions, which must not differ.
func (n *node) mode(f flow) conntrack.Mode {
	n.t.Helper()
	fwd, rev := n.find(f, false), n.find(f, true)
	if fwd.Mode != rev.Mode {
		n.t.Errorf("there in mode %d, back in mode %d", fwd.Mode, rev.Mode)
	}
	return fwd.Mode
}

// TestHowAFlowBegins: who moves the packets of each direction of a new flow, and from when
// on the kernel moves all of them.
func TestHowAFlowBegins(t *testing.T) {
	const lane, golang, opening = conntrack.ModeLane, conntrack.ModeGo, conntrack.ModeOpening
	for _, c := range []struct {
		sentence    string
		flow        flow
		near        bool
		there, back conntrack.Mode
		installed   int
	}{
		{"TCP over a wire is handed over: nothing follows a SYN before its answer", flow{packet.ProtocolTCP, 4000, 1, 1}, false, lane, lane, 1},
		{"of near TCP the answers", flow{packet.ProtocolTCP, 4000, 1, 1}, true, opening, lane, 0},
		{"of UDP the answers, for none is under way", flow{packet.ProtocolUDP, 4000, 1, 1}, false, golang, lane, 0},
		{"of near UDP no more", flow{packet.ProtocolUDP, 4000, 1, 1}, true, golang, lane, 0},
		{"of SCTP nothing", flow{packet.ProtocolSCTP, 4000, 1, 1}, true, golang, golang, 0},
		{"a frontend with the last id that the kernel has room for", flow{packet.ProtocolTCP, 4000, FrontendIDs - 1, 1}, false, lane, lane, 1},
		{"none with an id beyond", flow{packet.ProtocolTCP, 4000, FrontendIDs, 1}, true, golang, golang, 0},
		{"a backend with the last id that the kernel has room for", flow{packet.ProtocolUDP, 4000, 1, BackendIDs - 1}, false, golang, lane, 0},
		{"none with an id beyond", flow{packet.ProtocolUDP, 4000, 1, BackendIDs}, false, golang, golang, 0},
	} {
		n := newNode(t)
		n.begin(c.flow, c.near)
		fwd, rev := n.find(c.flow, false), n.find(c.flow, true)
		if fwd.Mode != c.there || rev.Mode != c.back {
			t.Errorf("%s: there in mode %d, back in mode %d, want %d and %d", c.sentence, fwd.Mode, rev.Mode, c.there, c.back)
		}
		if got := n.lane.Installed(); got != c.installed {
			t.Errorf("%s: %d flows counted, want %d", c.sentence, got, c.installed)
		}
	}
}

// TestAConnectionWithinTheNode: the client's packets stay with Go until the server has
// answered, Go has forwarded one that is no SYN, and nothing of them is in the ring.
func TestAConnectionWithinTheNode(t *testing.T) {
	const lane, opening = conntrack.ModeLane, conntrack.ModeOpening
	says := func(flags uint8) func(*node, flow) { return func(n *node, f flow) { n.meet(f, false, flags) } }
	answered := func(n *node, f flow) { // by the lane, so that Go has not met it
		answer := n.find(f, true)
		n.flows.Touch(&answer, conntrack.StateOf(synAck), conntrack.Tick(n.now))
	}
	drained := func(n *node, _ flow) { n.lane.Settle(true, n.now) }
	elsewhere := func(n *node, _ flow) { n.lane = New(n.flows) } // another worker, or one of a new process
	reopened := func(n *node, f flow) {
		syn := n.find(f, false)
		n.lane.Reopen(&syn)
		n.meet(f, false, packet.FlagSYN)
	}
	counted := func(n *node, _ flow) { n.lane.Installed() }
	for _, c := range []struct {
		sentence string
		does     []func(*node, flow)
		want     conntrack.Mode
	}{
		{"a SYN sent again", list(says(packet.FlagSYN), drained), opening},
		{"an ACK before any answer", list(says(ack), drained), opening},
		{"an answer alone", list(answered, drained), opening},
		{"an answer, and a SYN sent again", list(answered, says(packet.FlagSYN), drained), opening},
		{"an answer and an ACK, while frames wait in the ring", list(answered, says(ack)), opening},
		{"an answer and an ACK", list(answered, says(ack), drained), lane},
		{"an answer and the end of it", list(answered, says(fin), drained), opening},
		{"an answer and a reset", list(answered, says(rst), drained), opening},
		{"an answer, and an ACK that another worker meets", list(answered, elsewhere, says(ack), drained), lane},
		{"an answer and an ACK, of which the worker that met it does not live to hand it over", list(answered, says(ack), elsewhere, drained), opening},
		{"the client's next packet after that", list(answered, says(ack), elsewhere, says(ack), drained), lane},
		{"a SYN on a connection in the lane", list(answered, says(ack), drained, counted, reopened, drained), opening},
		{"an ACK after that", list(answered, says(ack), drained, counted, reopened, drained, says(ack), drained), lane},
	} {
		n, f := newNode(t), flow{packet.ProtocolTCP, 4000, 1, 1}
		n.begin(f, true)
		for _, do := range c.does {
			do(n, f)
		}
		if got := n.find(f, false).Mode; got != c.want {
			t.Errorf("%s: mode %d, want %d", c.sentence, got, c.want)
		}
		if got := n.lane.Installed(); (got == 1) != (c.want == lane) || got > 1 {
			t.Errorf("%s: %d flows counted", c.sentence, got)
		}
	}
}

// The client's packets of UDP follow once the kernel has seen an answer, which Go has not,
// and nothing of them is in the ring.
func TestAnAnswerThatOnlyTheKernelHasSeen(t *testing.T) {
	n, f := newNode(t), flow{packet.ProtocolUDP, 4000, 1, 1}
	n.begin(f, false)
	n.meet(f, false, 0)
	n.lane.Settle(true, n.now)
	if got := n.find(f, false).Mode; got != conntrack.ModeGo {
		t.Errorf("mode %d without an answer, want Go", got)
	}
	answer := n.find(f, true)
	n.flows.Touch(&answer, conntrack.StateSeen, conntrack.Tick(n.now))
	n.meet(f, false, 0)
	if got := n.find(f, false).Mode; got != conntrack.ModeGo {
		t.Errorf("mode %d while the ring may hold more, want Go", got)
	}
	n.lane.Settle(true, n.now)
	if got := n.mode(f); got != conntrack.ModeLane {
		t.Errorf("mode %d, want the lane", got)
	}
	if got := n.lane.Installed(); got != 1 {
		t.Errorf("%d flows counted, want 1", got)
	}
}

func TestWhenAFlowIsHandedOver(t *testing.T) {
	tcp := flow{packet.ProtocolTCP, 4000, 1, 1}
	udp := flow{packet.ProtocolUDP, 4000, 1, 1}
	sctp := flow{packet.ProtocolSCTP, 4000, 1, 1}
	there := func(flags uint8) func(*node, flow) { return func(n *node, f flow) { n.meet(f, false, flags) } }
	back := func(flags uint8) func(*node, flow) { return func(n *node, f flow) { n.meet(f, true, flags) } }
	waits := func(d int64) func(*node, flow) { return func(n *node, _ flow) { n.now += d } }
	cases := []struct {
		sentence  string
		flow      flow
		does      []func(*node, flow)
		now, then conntrack.Mode // before and after the ring is drained
	}{
		{"TCP not with the server's SYN, on which the client's packet that opens it follows", tcp, list(back(synAck)), conntrack.ModeGo, conntrack.ModeGo},
		{"TCP not with a SYN sent again", tcp, list(there(packet.FlagSYN)), conntrack.ModeGo, conntrack.ModeGo},
		{"TCP not for what the client says, who may not have been answered", tcp, list(there(ack), waits(nextTick), there(ack)), conntrack.ModeGo, conntrack.ModeGo},
		{"TCP that is under way, once nothing of it is in the ring", tcp, list(back(ack)), conntrack.ModeGo, conntrack.ModeLane},
		{"TCP not when it is refused", tcp, list(back(rst)), conntrack.ModeGo, conntrack.ModeGo},
		{"TCP not when it ends", tcp, list(back(fin)), conntrack.ModeGo, conntrack.ModeGo},
		{"UDP not with its first packets", udp, list(there(0), there(0)), conntrack.ModeGo, conntrack.ModeGo},
		{"UDP after an answer, once nothing of it is in the ring", udp, list(there(0), back(0)), conntrack.ModeGo, conntrack.ModeLane},
		{"UDP without an answer when the client goes on in a later tick", udp, list(there(0), waits(nextTick), there(0)), conntrack.ModeGo, conntrack.ModeLane},
		{"SCTP never", sctp, list(there(0), back(0), waits(nextTick), there(0), back(0)), conntrack.ModeGo, conntrack.ModeGo},
		{"a frontend with the last id that the kernel has room for", flow{packet.ProtocolTCP, 4000, FrontendIDs - 1, 1}, list(back(ack)), conntrack.ModeGo, conntrack.ModeLane},
		{"never one with an id beyond", flow{packet.ProtocolTCP, 4000, FrontendIDs, 1}, list(back(synAck), back(ack)), conntrack.ModeGo, conntrack.ModeGo},
		{"a backend with the last id that the kernel has room for", flow{packet.ProtocolUDP, 4000, 1, BackendIDs - 1}, list(back(0)), conntrack.ModeGo, conntrack.ModeLane},
		{"never one with an id beyond", flow{packet.ProtocolUDP, 4000, 1, BackendIDs}, list(back(0)), conntrack.ModeGo, conntrack.ModeGo},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			n := newNode(t)
			n.register(c.flow)
			for _, do := range c.does {
				do(n, c.flow)
			}
			if got := n.mode(c.flow); got != c.now {
				t.Errorf("mode %d at once, want %d", got, c.now)
			}
			n.lane.Settle(false, n.now)
			if got := n.mode(c.flow); got != c.now {
				t.Errorf("mode %d while frames wait in the ring, want %d", got, c.now)
			}
			n.lane.Settle(true, n.now)
			if got := n.mode(c.flow); got != c.then {
				t.Errorf("mode %d when the ring is empty, want %d", got, c.then)
			}
			want := 0
			if c.then == conntrack.ModeLane {
				want = 1
			}
			if got := n.lane.Installed(); got != want {
				t.Errorf("%d flows counted, want %d", got, want)
			}
		})
	}
}

func list(all ...func(*node, flow)) []func(*node, flow) { return all }

// A flow that both directions offer is handed over, and counted, once.
func TestBothDirectionsWaitInOnePlace(t *testing.T) {
	n, f := newNode(t), flow{packet.ProtocolUDP, 4000, 1, 1}
	n.register(f)
	n.now += nextTick
	n.meet(f, false, 0)
	n.meet(f, true, 0)
	n.meet(f, true, 0)
	n.lane.Settle(true, n.now)
	if got := n.lane.Installed(); got != 1 {
		t.Errorf("%d flows counted, want 1", got)
	}
}

// Of two flows for one place the first has it, however often the other comes; the other is
// handed over when it comes again.
func TestTwoFlowsForOnePlace(t *testing.T) {
	n := newNode(t)
	first := flow{packet.ProtocolUDP, 4000, 1, 1}
	n.register(first)
	a := n.find(first, true)
	second := first
	for b := a; second == first || placeOf(&b) != placeOf(&a); b = n.find(second, true) {
		second.port++
		n.register(second)
	}
	n.meet(first, true, 0)
	n.meet(second, true, 0)
	n.meet(second, true, 0)
	n.lane.Settle(true, n.now)
	if got := [2]conntrack.Mode{n.mode(first), n.mode(second)}; got != [2]conntrack.Mode{conntrack.ModeLane, conntrack.ModeGo} {
		t.Errorf("modes %v, want that the first alone is in the lane", got)
	}
	n.meet(second, true, 0)
	n.lane.Settle(true, n.now)
	if got := n.mode(second); got != conntrack.ModeLane {
		t.Errorf("mode %d of the second when it came again, want the lane", got)
	}
}

// However many flows are answered in one round, all are in the lane after some more.
func TestMoreFlowsThanPlaces(t *testing.T) {
	const many = 20 * places
	n := newNode(t)
	var all []flow
	for i := range many {
		all = append(all, flow{packet.ProtocolUDP, uint16(1000 + i), 1, 1})
		n.register(all[i])
	}
	left := many
	for round := 0; left > 0 && round < many; round++ {
		before := left
		for _, f := range all {
			n.meet(f, true, 0)
		}
		n.lane.Settle(true, n.now)
		left = 0
		for _, f := range all {
			if n.mode(f) == conntrack.ModeGo {
				left++
			}
		}
		if left == before {
			t.Fatalf("round %d handed over none of %d flows that wait", round, left)
		}
	}
	if got := n.lane.Installed(); got != many {
		t.Errorf("%d flows counted, want %d", got, many)
	}
}

// A worker that never empties its ring hands over all the same: it needs it most.
func TestAnOverrunWorkerHandsOver(t *testing.T) {
	n, f := newNode(t), flow{packet.ProtocolUDP, 4000, 1, 1}
	n.register(f)
	n.meet(f, true, 0)
	n.lane.Settle(false, n.now+patience-1)
	if got := n.mode(f); got != conntrack.ModeGo {
		t.Errorf("mode %d before the patience is over, want Go", got)
	}
	n.lane.Settle(false, n.now+patience)
	if got := n.mode(f); got != conntrack.ModeLane {
		t.Errorf("mode %d after it, want the lane", got)
	}
}

// What became of a flow while it waited is respected.
func TestAFlowThatEndsWhileItWaits(t *testing.T) {
	n, f := newNode(t), flow{packet.ProtocolUDP, 4000, 1, 1}
	n.register(f)
	n.meet(f, true, 0)
	old := n.find(f, false)
	n.flows.Delete(&old)
	n.register(f) // the same tuples, perhaps in the same slots
	n.lane.Settle(true, n.now)
	if got := n.mode(f); got != conntrack.ModeGo {
		t.Errorf("a new flow is in mode %d for what its predecessor did", got)
	}
	if got := n.lane.Installed(); got != 0 {
		t.Errorf("%d flows counted, want none", got)
	}
}

func TestNoAllocation(t *testing.T) {
	n, f := newNode(t), flow{packet.ProtocolUDP, 4000, 1, 1}
	n.register(f)
	if got := testing.AllocsPerRun(100, func() {
		n.meet(f, true, 0)
		n.lane.Settle(true, n.now)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// BenchmarkOffer is what a packet costs whose flow is installed, is not to be, or waits.
func BenchmarkOffer(b *testing.B) {
	for _, c := range []struct {
		name     string
		protocol uint8
		mode     conntrack.Mode
	}{{"installed", packet.ProtocolUDP, conntrack.ModeLane}, {"never", packet.ProtocolSCTP, conntrack.ModeGo}, {"waits", packet.ProtocolUDP, conntrack.ModeGo}} {
		b.Run(c.name, func(b *testing.B) {
			n, f := newNode(b), flow{c.protocol, 4000, 1, 1}
			n.register(f)
			found := n.find(f, true)
			found.Mode = c.mode
			for b.Loop() {
				n.lane.Offer(&found, 0, n.now)
				n.lane.taken = 0
			}
		})
	}
}
