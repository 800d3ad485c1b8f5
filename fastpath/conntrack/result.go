package conntrack

// Result says what became of a pair given to Insert or Replace.
type Result uint8

const (
	Inserted     Result = iota // both directions are in the table
	Exists                     // the forward tuple was there already; fwd now holds the flow found
	Clash                      // the reply tuple belongs to another flow: choose another source port
	Full                       // no free slot in the buckets of one of the tuples
	HalfOpenFull               // as many half-open TCP connections as permitted, and none old enough to give way
	Gone                       // Replace only: the old flow is not there any more
	ShareFull                  // the port has its share of the table, or of the unanswered flows in it
	Invalid                    // no slot can hold the pair: families or protocols differ, or a network id is too large
)

func (r Result) String() string {
	if r > Invalid {
		return "unknown"
	}
	return [...]string{"inserted", "exists", "clash", "full", "half-open full", "gone", "share full", "invalid"}[r]
}
