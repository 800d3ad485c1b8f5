package xdp

// Cause says why the programs left a claimed packet to Go instead of repeating a decision.
type Cause uint8

const (
	CauseMiss       Cause = iota + 1 // no flow: Go has to choose
	CauseGoMode                      // the flow is not installed, or the lane is off
	CauseGeneration                  // its frontend, backend or target is not what it was
	CauseSYN                         // a SYN on a flow that exists
	CauseTorn                        // Go was writing the flow
	CauseTTL                         // its time to live is used up
	CauseMTU                         // it does not fit the way out
	CausePort                        // it came in on another port than the flow's packets do
	CauseHeader                      // options, extension headers, a fragment, cut off, or UDP segments from the node to itself
	CauseICMP                        // an ICMP error about a flow, or any ICMP message to a claimed address

	Causes = int(CauseICMP) + 1 // number of causes, the unused 0 included
)

func (c Cause) String() string {
	if int(c) >= Causes {
		return "unknown"
	}
	return [Causes]string{"none", "miss", "go-mode", "generation", "syn", "torn", "ttl", "mtu", "port", "header", "icmp"}[c]
}
