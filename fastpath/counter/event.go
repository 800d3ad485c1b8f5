package counter

// Event is something a worker counts besides the reasons of packets. Numbers may be
// appended, never reused: the file is read across versions.
type Event uint8

const (
	Received    Event = iota // frames taken from the port
	Transmitted              // frames given to the port for sending
	Recycled                 // frames given back to the port unsent
	Batches                  // batches processed
	Waits                    // times the worker went to sleep for want of frames
	Pauses                   // times the worker let frames gather before it drained them
	Expired                  // flows removed by the sweep, both directions counted as one
	Strays                   // frames that did not carry the trunk's punt header
	Kicks                    // system calls that made frames leave
	Overruns                 // frames lost before the worker for want of room: it was too slow or stood still
	Installed                // flows handed over to the kernel, both directions counted as one
	Held                     // fragments copied to wait for the first one of their datagram
	Taken                    // free frames taken from the port, for packets that did not just come in

	Events // number of events
)

var eventNames = [Events]string{
	"received", "transmitted", "recycled", "batches", "waits", "pauses", "expired", "strays",
	"kicks", "overruns", "installed", "held", "taken",
}

// String is the word used in metrics and `lace get`.
func (e Event) String() string {
	if e >= Events {
		return "unknown"
	}
	return eventNames[e]
}

// Gauge is a value of the node that is replaced rather than added to. Numbers may be
// appended, never reused.
type Gauge uint8

const (
	Started       Gauge = iota // wall clock at which this process began to serve, nanoseconds since 1970
	Generation                 // generation of the snapshot in use, 0 before the first
	InUseSince                 // wall clock at which that generation came into use, nanoseconds since 1970
	Flows                      // flows in the table, each counted once
	HalfOpen                   // TCP flows among them whose handshake is not complete
	FlowCapacity               // flows that the table has room for
	Refused                    // snapshots refused since the process began: damaged or of a foreign layout
	SyncFailures               // times the kernel side could not be brought in line since the process began
	Restored                   // flows found in the table when the process began
	RepairedFlows              // torn or half-written flows removed when the process began
	TrunkDropped               // packets that the trunk lost on their way to Go, since it was made
	StartTook                  // from the start of the process until it was ready, nanoseconds
	Broken                     // 0, or how many parts of the upkeep have failed and are tried again
	Unanswered                 // datagram flows that nobody has answered
	Evicted                    // unconfirmed flows that gave way to newer ones of their port, since the process began
	RaisedAlarms               // a bit for each Alarm
	FullestPort                // id of the port that has most of its share
	PolicedPort                // id of the port that was held back most, lately
	PuntLimit                  // new flows that a port may ask for in a second, 0 without a limit
	ReturnDropped              // packets that the trunk lost on their way back from Go, since it was made
	firstRepair                // one gauge for each Repair, in their order

	Gauges = firstRepair + Gauge(Repairs) // number of gauges
)

var gaugeNames = [firstRepair]string{
	"started", "generation", "in-use-since", "flows", "half-open", "flow-capacity",
	"refused-snapshots", "sync-failures", "restored-flows", "repaired-flows",
	"trunk-dropped", "start-took", "broken", "unanswered", "evicted", "alarms", "fullest-port",
	"policed-port", "punt-limit", "return-dropped",
}

// String is the word used in metrics and `lace get`.
func (g Gauge) String() string {
	if g >= Gauges {
		return "unknown"
	}
	if g >= firstRepair {
		return "repaired-" + Repair(g-firstRepair).String()
	}
	return gaugeNames[g]
}
