// Package api is what the agent says to people: the JSON of its admin socket, and
// the client that cmd/lace asks with.
//
// It owns the names and types of the answers and nothing else: no state, no
// Kubernetes type, the standard library only, so that the command line stays small.
// Field names are stable; new fields may be added, none changes its meaning.
// Times are RFC 3339, durations nanoseconds or as the name says, addresses text,
// protocols in capitals as Kubernetes writes them.
//
// Cost: one request over a unix socket each; lists are bounded by the server.
package api

// Paths of the admin socket. All are GET.
const (
	PathStatus   = "/v1/status"
	PathServices = "/v1/services"
	PathBackends = "/v1/backends"
	PathFlows    = "/v1/flows" // ?limit=N (1 to MaxFlows)&open=true (closed ones are left out)
	PathDrops    = "/v1/drops"
	PathLane     = "/v1/lane"
	PathPorts    = "/v1/ports"
	PathProblems = "/v1/problems"
	PathExplain  = "/v1/explain" // ?from=POD|IP|host&to=IP:PORT/PROTO
)

// DefaultFlows and MaxFlows bound the list of flows.
const (
	DefaultFlows = 1000
	MaxFlows     = 100_000
)

// List is the answer to every question for more than one thing.
type List[T any] struct {
	Items     []T  `json:"items"`
	Truncated bool `json:"truncated,omitempty"` // there are more than Items holds
	Closed    int  `json:"closed,omitempty"`    // flows that were met and left out because they are closed
}

// Error is the body of every answer with a status of 400 or more.
type Error struct {
	Message string `json:"error"`
}
