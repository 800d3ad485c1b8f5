package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/agent"
)

// Roles of the processes that the package starts in a lab.
const (
	roleEtcd        = "etcd"
	roleAPIServer   = "kube-apiserver"
	roleControllers = "kube-controller-manager"
	roleAgent       = "kube-agent"
	roleKubeProxy   = "kube-proxy"
	roleCleanup     = "cleanup"
)

// Main must be the first call of a TestMain that uses the package.
func Main() {
	for _, role := range []string{roleEtcd, roleAPIServer, roleControllers, roleKubeProxy, RoleLaceAgent, RoleLaceFastpath} {
		lab.Program(role, func(spec []byte) error { return become(role, spec) })
	}
	lab.Program(roleAgent, runAgent)
	lab.Program(roleCleanup, runCleanup)
	lab.AddSource(sourceName, readAPI)
	lab.Main()
}

// componentSpec is a component of the control plane.
type componentSpec struct {
	Binary string
	Args   []string
}

// become turns this process into a component.
func become(role string, text []byte) error {
	var s componentSpec
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	args := append([]string{filepath.Join("/", role)}, s.Args...)
	return fmt.Errorf("%s: %w", s.Binary, syscall.Exec(s.Binary, args, os.Environ()))
}

// agentSpec is the agent of a node.
type agentSpec struct {
	Node     string
	StateDir string
	sourceSpec
	AgentOptions
}

// runAgent does what lace-agent does with an API server.
func runAgent(text []byte) error {
	var s agentSpec
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config := agent.Config{
		StateDir: s.StateDir, BPFFS: lab.BPFDir(s.StateDir), NodeName: s.Node,
		HealthAddr: agent.DefaultHealthAddr, MetricsAddr: agent.DefaultMetricsAddr,
		Delivery: s.Delivery, BesideProxy: s.BesideProxy,
		Version: "lab", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", s.Node),
	}
	if s.LaneOff {
		config.Settings = table.DefaultSettings()
		config.Settings.Lane = 0
	}
	tell, err := s.read(&config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return tell(ctx) })
	group.Go(func() error { return agent.Run(ctx, config) })
	return group.Wait()
}
