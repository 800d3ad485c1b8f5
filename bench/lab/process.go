package lab

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
)

// fastpathSpec and agentSpec are what the processes of a node are told at their start.
type fastpathSpec struct {
	Node      string
	StateDir  string
	Workers   int
	FlowSlots int
}

type agentSpec struct {
	Node      string
	StateDir  string
	Manifests string
}

// untilSignal gives a process of a node a context that ends when it is told to stop.
func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// StartFastpath starts the node's fast path.
func (n *Node) StartFastpath(ctx context.Context) error {
	return n.startProcess(ctx, roleFastpath, fastpathSpec{
		Node: n.Name, StateDir: n.stateDir,
		Workers: n.lab.topology.Workers, FlowSlots: n.lab.topology.FlowSlots,
	})
}

// StartAgent starts the node's agent on the lab's folder of YAML.
func (n *Node) StartAgent(ctx context.Context) error {
	return n.startProcess(ctx, roleAgent, agentSpec{
		Node: n.Name, StateDir: n.stateDir, Manifests: n.lab.Manifests(),
	})
}

var errNotBuilt = errors.New("this process of the product is not part of the build yet")

func runFastpath(fastpathSpec) error { return errNotBuilt }
func runAgent(agentSpec) error       { return errNotBuilt }
