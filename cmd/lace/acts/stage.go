package acts

import (
	"context"
	"time"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// Stage is where acts are played. Errors of its methods are about the stage; what becomes
// of traffic is in their results.
type Stage interface {
	// Label says what carries the packets, for every screen.
	Label() string
	// Simulated says that no kernel is involved; every line has to say so too.
	Simulated() bool
	// Ready waits until every node has programmed what the manifests say.
	Ready(ctx context.Context) error
	// Status of each node's agent.
	Status(ctx context.Context) ([]api.Status, error)
	// Backends, Drops and Problems as the agent of the clients' node tells them.
	Backends(ctx context.Context) ([]api.Backend, error)
	Drops(ctx context.Context) ([]api.Drop, error)
	Problems(ctx context.Context) ([]api.Problem, error)
	// Explain asks the agent of the clients' node.
	Explain(ctx context.Context, from, to string) (api.Explanation, error)

	// Clients are the hosts that connections come from: pods, the node itself, outside.
	Clients() []Client
	Dial(ctx context.Context, from string, r traffic.Request) (traffic.Answer, error)
	Burst(ctx context.Context, from string, b traffic.Burst) (traffic.Tally, error)
	StartAttempts(ctx context.Context, from string, b traffic.Burst) (Attempts, error)
	StartStream(ctx context.Context, from string, s traffic.Stream) (Stream, error)

	// StartFlood sends the first packets of new flows, as fast as the stage can.
	StartFlood(ctx context.Context, from string, f traffic.Flood) (Flood, error)

	// Web are the endpoints of the Service web as they are in the beginning.
	Web() []manifests.Endpoint
	// SetWeb saves other endpoints and waits until every node goes by them.
	SetWeb(ctx context.Context, endpoints []manifests.Endpoint) (Programmed, error)

	// Kill ends a process of the clients' node with SIGKILL; Start starts it again and
	// does not wait for it.
	Kill(ctx context.Context, p Process) error
	Start(ctx context.Context, p Process) error

	// Manifests is the folder of YAML that people may edit, Tells what else people may
	// want to know about the stage.
	Manifests() string
	Tells() []string
}

// Client is a host that connections come from.
type Client struct {
	Name string
	Is   string // "a pod on n1", "the node n1 itself", "outside of the cluster"
}

// Process is one of the two processes of a node.
type Process string

const (
	Fastpath Process = "fastpath"
	Agent    Process = "agent"
)

// Programmed says when a change of the manifests was saved and when all nodes went by it.
type Programmed struct{ Saved, InUse time.Time }

// Took is the time in between.
func (p Programmed) Took() time.Duration { return p.InUse.Sub(p.Saved) }

// Attempts and Stream are running traffic of a stage.
type Attempts interface {
	Stop(ctx context.Context) ([]traffic.Answer, error)
}

type Stream interface {
	Progress(ctx context.Context) (traffic.Progress, error)
	Stop(ctx context.Context) (traffic.Progress, error)
}
