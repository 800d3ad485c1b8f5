// Package reason is the closed list of why a packet was treated as it was.
//
// The same word is the counter label, what `lace explain` prints, the row of
// docs/reference/reasons.md and the expectation of a packet case; a test holds the
// four together. BPF programs use the same numbers (xdp/bpf/reason.h, generated).
// Numbers may be appended, never reused: counters are read across versions.
package reason

// Reason says why. The zero value is None: not decided yet.
type Reason uint8

// Class groups reasons by what became of the packet.
type Class uint8

const (
	ClassNone    Class = iota
	ClassForward       // rewritten and sent on
	ClassAnswer        // answered by Lace itself: TCP reset or ICMP error
	ClassPass          // left to the kernel, untouched
	ClassDrop          // gone
)

func (c Class) String() string {
	return [...]string{"none", "forward", "answer", "pass", "drop"}[c]
}

const (
	None Reason = iota

	// Forward.
	NewFlow     // first packet of a flow: a backend was chosen
	Established // packet of a registered flow, client to backend
	Reply       // packet of a registered flow, backend to client
	Repicked    // flow's backend is gone: another one was chosen

	// Answer.
	NoEndpoints // frontend without any usable endpoint: refused
	UnknownPort // VIP is known, the port is not: refused
	NoFlow      // TCP packet without SYN to a frontend, and no flow: reset

	// Pass.
	NotClaimed // not Lace's: given back to the kernel

	// Drop.
	NoLocalEndpoint     // policy Local and no endpoint on this node
	SpoofedSource       // source address does not belong to the port
	Malformed           // headers contradict each other or the frame length
	Fragment            // fragment of a datagram whose first one was dropped or answered
	ICMPError           // ICMP error or echo towards a VIP
	UnsupportedProtocol // transport protocol that no frontend can have
	FlowTableFull       // no room for a new flow
	HalfOpenFull        // too many half-open TCP flows
	SourcePortsUsedUp   // no free source port towards that backend
	TTLExceeded         // time to live (hop limit) used up
	NoTarget            // no port leads to the backend
	TooBig              // packet does not fit the way out
	FlowEnded           // flow's frontend is gone
	UnknownPortID       // trunk frame names a port that is not known
	NoSnapshot          // no tables loaded yet
	RingFull            // transmit ring full
	ForeignFrame        // frame on the trunk that the claim programs did not send
	NoWorker            // no AF_XDP socket on the trunk: fast path is down
	UnallocatedVIP      // address in a service range that no Service has
	RateLimited         // answer suppressed by the rate limit
	StrayReset          // TCP reset to a frontend, and no flow: nothing to end, and never answered

	// Forward.
	ICMPTranslated // ICMP error about a registered flow, translated to its other end

	// Answer.
	PacketTooBig // packet does not fit the way out: its sender is told the MTU
	TimeExceeded // time to live (hop limit) used up: its sender is told

	// Drop.
	Echo              // ping to a VIP
	UnwantedICMP      // source quench or redirect about a registered flow
	SourceNotAllowed  // the Service's source ranges do not hold the client
	Policed           // the sender asks Go for more than its share while the trunk is congested
	FlowShareFull     // the sender's port has its share of the flow table
	FragmentTimeout   // the first fragment of its datagram did not come
	FragmentOverlap   // fragments of its datagram overlap or contradict each other
	FragmentTiny      // first fragment that does not hold its transport header
	FragmentTableFull // the bounds for unfinished datagrams were used up
	FragmentDuplicate // fragment that has come before

	// Forward.
	Cut // later fragment of a packet that was cut for its way out

	Count // number of reasons
)

type entry struct {
	name  string
	class Class
	help  string
}

var entries = [Count]entry{
	None:                {"none", ClassNone, "Not decided"},
	NewFlow:             {"new-flow", ClassForward, "First packet of a flow; a backend was chosen"},
	Established:         {"established", ClassForward, "Packet of a registered flow, client to backend"},
	Reply:               {"reply", ClassForward, "Packet of a registered flow, backend to client"},
	Repicked:            {"repicked", ClassForward, "The flow's backend stopped serving; another one was chosen"},
	NoEndpoints:         {"no-endpoints", ClassAnswer, "The frontend has no usable endpoint anywhere; the client is refused"},
	UnknownPort:         {"unknown-port", ClassAnswer, "The VIP is known but has no such port; the client is refused"},
	NoFlow:              {"no-flow", ClassAnswer, "TCP packet other than SYN to a frontend without a registered flow; answered with a reset"},
	NotClaimed:          {"not-claimed", ClassPass, "Not Lace's traffic; given back to the kernel"},
	NoLocalEndpoint:     {"no-local-endpoint", ClassDrop, "Traffic policy Local and no usable endpoint on this node"},
	SpoofedSource:       {"spoofed-source", ClassDrop, "The source address does not belong to the port on which the packet came"},
	Malformed:           {"malformed", ClassDrop, "Headers contradict each other or the length of the frame"},
	Fragment:            {"fragment", ClassDrop, "Fragment of a datagram whose first fragment was dropped or answered"},
	ICMPError:           {"icmp", ClassDrop, "ICMP message to a VIP that belongs to no flow"},
	UnsupportedProtocol: {"unsupported-protocol", ClassDrop, "Transport protocol that no frontend can have"},
	FlowTableFull:       {"flow-table-full", ClassDrop, "No room for a new flow in the flow table"},
	HalfOpenFull:        {"half-open-full", ClassDrop, "Too many half-open TCP flows and none old enough to replace"},
	SourcePortsUsedUp:   {"source-ports-used-up", ClassDrop, "No free source port towards the chosen backend"},
	TTLExceeded:         {"ttl-exceeded", ClassDrop, "Time to live or hop limit used up, and its sender could not be told"},
	NoTarget:            {"no-target", ClassDrop, "No port of the node leads to the backend"},
	TooBig:              {"too-big", ClassDrop, "The packet does not fit the way out, and its sender could not be told"},
	FlowEnded:           {"flow-ended", ClassDrop, "The flow's frontend is gone"},
	UnknownPortID:       {"unknown-port-id", ClassDrop, "A trunk frame names a port that the tables do not have"},
	NoSnapshot:          {"no-snapshot", ClassDrop, "No tables loaded yet"},
	RingFull:            {"ring-full", ClassDrop, "The transmit ring was full"},
	ForeignFrame:        {"foreign-frame", ClassDrop, "Frame on the trunk that no claim program sent"},
	NoWorker:            {"no-worker", ClassDrop, "No AF_XDP socket on the trunk queue; the fast path is down"},
	UnallocatedVIP:      {"unallocated-vip", ClassDrop, "Address in a service range that no Service has"},
	RateLimited:         {"rate-limited", ClassDrop, "An answer was due but its rate limit was used up"},
	SourceNotAllowed:    {"source-not-allowed", ClassDrop, "The client is in none of the source ranges of the Service"},
	StrayReset:          {"stray-reset", ClassDrop, "TCP reset to a frontend without a registered flow"},
	ICMPTranslated:      {"icmp-translated", ClassForward, "ICMP error about a registered flow, translated to the flow's other end"},
	PacketTooBig:        {"packet-too-big", ClassAnswer, "The packet does not fit the way out; its sender was told the MTU"},
	TimeExceeded:        {"time-exceeded", ClassAnswer, "Time to live or hop limit used up; the sender was told"},
	Echo:                {"echo", ClassDrop, "Ping to a VIP; it is not answered"},
	UnwantedICMP:        {"icmp-unwanted", ClassDrop, "ICMP source quench or redirect about a registered flow, neither of which is translated; or an error about a packet to a VIP, which nobody can have met: it is forged"},
	Policed:             {"policed", ClassDrop, "The port, or on an uplink the source prefix, asks for more than its share while the trunk is congested"},
	FlowShareFull:       {"flow-share-full", ClassDrop, "The port has its share of the flow table, and opens no further flow until some of its own end"},
	FragmentTimeout:     {"fragment-timeout", ClassDrop, "Fragment whose first fragment did not come in time"},
	FragmentOverlap:     {"fragment-overlap", ClassDrop, "Fragments of the datagram overlap or contradict each other"},
	FragmentTiny:        {"fragment-tiny", ClassDrop, "First fragment too small for its transport header, and those that follow it"},
	FragmentTableFull:   {"fragment-table-full", ClassDrop, "The port has more unfinished fragmented datagrams than it may, or one has too many fragments"},
	FragmentDuplicate:   {"fragment-duplicate", ClassDrop, "Fragment that has come before"},
	Cut:                 {"cut", ClassForward, "Later fragment of a packet that was cut, because it did not fit the way out whole"},
}

// String is the word used everywhere.
func (r Reason) String() string {
	if r >= Count {
		return "unknown"
	}
	return entries[r].name
}

// Class says what becomes of a packet with this reason.
func (r Reason) Class() Class {
	if r >= Count {
		return ClassNone
	}
	return entries[r].class
}

// Help is one sentence without a full stop, for metrics and documents.
func (r Reason) Help() string {
	if r >= Count {
		return ""
	}
	return entries[r].help
}

// Parse finds a reason by its word.
func Parse(s string) (Reason, bool) {
	for i := range entries {
		if entries[i].name == s {
			return Reason(i), true
		}
	}
	return None, false
}
