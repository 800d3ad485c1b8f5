package lab

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/dataplane"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/agent"
)

// fastpathSpec and agentSpec are what the processes of a node are told at their start.
type fastpathSpec struct {
	StateDir  string
	Workers   int
	FlowSlots int
}

type agentSpec struct {
	Node      string
	StateDir  string
	Manifests string
	Source    *Source
	Lane      string
	Delivery  model.Delivery
	Forgetful bool
}

// untilSignal gives a process of a node a context that ends when it is told to stop.
func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// StartFastpath starts the node's fast path.
func (n *Node) StartFastpath(ctx context.Context) error {
	return n.startProcess(ctx, roleFastpath, fastpathSpec{
		StateDir: n.stateDir,
		Workers:  n.lab.topology.Workers, FlowSlots: n.lab.topology.FlowSlots,
	})
}

// StartAgent starts the node's agent on the lab's source.
func (n *Node) StartAgent(ctx context.Context) error {
	return n.StartAgentWith(ctx, n.lab.topology.Delivery)
}

// StartAgentWith starts it with another delivery than the topology's.
func (n *Node) StartAgentWith(ctx context.Context, delivery string) error {
	t := &n.lab.topology
	spec := agentSpec{Node: n.Name, StateDir: n.stateDir, Manifests: n.lab.Manifests(), Source: t.Source, Lane: t.Lane, Forgetful: t.Forgetful}
	if delivery == "stack" {
		spec.Delivery = model.Stack
	}
	return n.startProcess(ctx, roleAgent, spec)
}

// StartProgram starts a program that was added by Program, one of each role at a time. It
// ends with the node, or with StopProgram.
func (n *Node) StartProgram(ctx context.Context, role string, spec any) error {
	return n.startProcess(ctx, role, spec)
}

// StopProgram asks a program to end and returns when it has.
func (n *Node) StopProgram(ctx context.Context, role string) error {
	return n.signal(ctx, role, syscall.SIGTERM)
}

// runFastpath is the life of a node's fast path: what lace-fastpath does, with paths of
// its own.
func runFastpath(spec fastpathSpec) error {
	ctx, stop := untilSignal()
	defer stop()
	return dataplane.Run(ctx, dataplane.Config{
		StateDir:  spec.StateDir,
		BPFFS:     BPFDir(spec.StateDir),
		Workers:   spec.Workers,
		FlowSlots: spec.FlowSlots,
		Log:       logger(),
	})
}

// logger writes to the file of a node's process, which has both in its path.
func logger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

// runAgent is the life of a node's agent: what lace-agent does with its source.
func runAgent(spec agentSpec) error {
	ctx, stop := untilSignal()
	defer stop()
	config := agent.Config{
		StateDir:    spec.StateDir,
		BPFFS:       BPFDir(spec.StateDir),
		NodeName:    spec.Node,
		HealthAddr:  agent.DefaultHealthAddr,
		MetricsAddr: agent.DefaultMetricsAddr,
		Settings:    spec.settings(),
		Delivery:    spec.Delivery,
		Version:     "lab",
		Log:         logger(),
	}
	beside, err := spec.read(&config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if beside != nil {
		group.Go(func() error { return beside(ctx) })
	}
	group.Go(func() error { return agent.Run(ctx, config) })
	return group.Wait()
}

func (s agentSpec) settings() table.Settings {
	out := table.DefaultSettings()
	if s.Forgetful {
		t := &out.Timeouts
		t.TCPHalfOpen, t.TCPClosed, t.UDPNew, t.UDP = 2e9, 2e9, 2e9, 2e9
	}
	switch s.Lane {
	case "on":
		out.Lane = 1
	case "off":
		out.Lane = 0
	}
	return out
}
