// Package real is the stage of the demo that is real: a lab of network namespaces in
// which the two processes of the product run on both nodes, with AF_XDP, BPF programs and
// ordinary sockets.
//
// It owns the lab and nothing else; bounds and wording are those of package acts. It needs
// the capabilities that testenv.Missing names.
package real

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/cmd/lace/acts"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// Stage implements acts.Stage on a lab.
type Stage struct {
	lab   *lab.Lab
	node  *lab.Node // of the clients: its processes are killed, its agent is asked
	admin *api.Client
	label string
}

// shortPath is a link to the state directory of the clients' node, short enough to be
// copied from a terminal's line. It vanishes with the lab's folder.
func (s *Stage) shortPath() string { return filepath.Join(s.lab.Folder(), "state") }

var _ acts.Stage = (*Stage)(nil)

// Start builds the lab and starts every process in it. folder is YAML to begin with;
// empty: that of the lab. lane is on or off.
func Start(ctx context.Context, folder string, keep bool, lane string) (*Stage, error) {
	l, err := lab.Start(ctx, lab.Topology{Manifests: folder, Keep: keep, Lane: lane})
	if err != nil {
		return nil, err
	}
	s := &Stage{lab: l, node: l.Node("n1"), label: "real AF_XDP"}
	s.admin = s.node.Admin()
	if err := s.populate(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stage) populate(ctx context.Context) error {
	if err := os.Symlink(s.node.StatePath(""), s.shortPath()); err != nil {
		return err
	}
	for _, name := range lab.WebPods {
		if err := s.lab.Pod(name).Listen(ctx, lab.WebTarget); err != nil {
			return err
		}
	}
	for _, n := range s.lab.Nodes() {
		if err := n.StartFastpath(ctx); err != nil {
			return err
		}
		if err := n.StartAgent(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends everything.
func (s *Stage) Close() error {
	s.admin.Close()
	return s.lab.Close()
}

// Label says what carries the packets, once the stage was ready.
func (s *Stage) Label() string { return s.label }

// Simulated says no.
func (s *Stage) Simulated() bool { return false }

// Ready waits for both nodes.
func (s *Stage) Ready(ctx context.Context) error {
	if err := s.lab.AwaitReady(ctx); err != nil {
		return fmt.Errorf("%w; logs are in %s", err, s.lab.Folder())
	}
	st, err := s.admin.Status(ctx)
	if err != nil {
		return err
	}
	s.label = fmt.Sprintf("real AF_XDP (veth, %s, %s)", st.Fastpath.XDPMode, st.Fastpath.SocketMode)
	return nil
}

// Status of both nodes.
func (s *Stage) Status(ctx context.Context) (out []api.Status, err error) {
	for _, n := range s.lab.Nodes() {
		admin := n.Admin()
		st, err := admin.Status(ctx)
		admin.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		out = append(out, st)
	}
	return out, nil
}

// Backends as the clients' node has them.
func (s *Stage) Backends(ctx context.Context) ([]api.Backend, error) {
	list, err := s.admin.Backends(ctx)
	return list.Items, err
}

// Drops of the clients' node.
func (s *Stage) Drops(ctx context.Context) ([]api.Drop, error) {
	list, err := s.admin.Drops(ctx)
	return list.Items, err
}

// Problems that the agent has.
func (s *Stage) Problems(ctx context.Context) ([]api.Problem, error) {
	list, err := s.admin.Problems(ctx)
	return list.Items, err
}

// Explain asks the clients' node.
func (s *Stage) Explain(ctx context.Context, from, to string) (api.Explanation, error) {
	return s.admin.Explain(ctx, from, to)
}

// Clients are a pod, the node and the outside client; all enter Lace on n1.
func (s *Stage) Clients() []acts.Client {
	return []acts.Client{
		{Name: "shopper", Is: "a pod on n1"},
		{Name: "n1", Is: "the node itself"},
		{Name: lab.OutsideName, Is: "outside of the cluster"},
	}
}

// Dial makes one attempt.
func (s *Stage) Dial(ctx context.Context, from string, r traffic.Request) (traffic.Answer, error) {
	h, err := s.lab.Host(from)
	if err != nil {
		return traffic.Answer{}, err
	}
	return h.Dial(ctx, r)
}

// Burst makes many attempts.
func (s *Stage) Burst(ctx context.Context, from string, b traffic.Burst) (traffic.Tally, error) {
	h, err := s.lab.Host(from)
	if err != nil {
		return traffic.Tally{}, err
	}
	return h.Burst(ctx, b)
}

// StartAttempts makes attempts until they are stopped.
func (s *Stage) StartAttempts(ctx context.Context, from string, b traffic.Burst) (acts.Attempts, error) {
	h, err := s.lab.Host(from)
	if err != nil {
		return nil, err
	}
	return h.StartAttempts(ctx, b)
}

// StartStream opens long-lived flows.
func (s *Stage) StartStream(ctx context.Context, from string, st traffic.Stream) (acts.Stream, error) {
	h, err := s.lab.Host(from)
	if err != nil {
		return nil, err
	}
	return h.StartStream(ctx, st)
}

// StartFlood floods from a host.
func (s *Stage) StartFlood(ctx context.Context, from string, f traffic.Flood) (acts.Flood, error) {
	h, err := s.lab.Host(from)
	if err != nil {
		return nil, err
	}
	return h.StartFlood(ctx, f)
}

// Web are the three pods, all ready.
func (s *Stage) Web() (out []manifests.Endpoint) {
	for _, name := range lab.WebPods {
		out = append(out, s.lab.Pod(name).Endpoint(manifests.Ready))
	}
	return out
}

// SetWeb saves web's endpoints and waits for both nodes.
func (s *Stage) SetWeb(ctx context.Context, endpoints []manifests.Endpoint) (p acts.Programmed, err error) {
	b, err := manifests.Slices("web", lab.WebPorts, endpoints)
	if err != nil {
		return p, err
	}
	p.Saved = time.Now()
	if err := manifests.Save(s.lab.Manifests(), "web-endpoints.yaml", b); err != nil {
		return p, err
	}
	err = s.lab.AwaitService(ctx, "web", endpoints)
	p.InUse = time.Now()
	return p, err
}

// Kill ends a process of n1 with SIGKILL.
func (s *Stage) Kill(ctx context.Context, p acts.Process) error {
	if p == acts.Agent {
		return s.node.KillAgent(ctx)
	}
	return s.node.KillFastpath(ctx)
}

// Start starts a process of n1 again.
func (s *Stage) Start(ctx context.Context, p acts.Process) error {
	if p == acts.Agent {
		return s.node.StartAgent(ctx)
	}
	return s.node.StartFastpath(ctx)
}

// Manifests is the folder of YAML.
func (s *Stage) Manifests() string { return s.lab.Manifests() }

// Tells where logs are, and how another terminal asks the agent.
func (s *Stage) Tells() []string {
	return []string{
		"logs: " + s.lab.Folder() + "/n1, n2",
		"another terminal: export LACE_STATE_DIR=" + s.shortPath(),
		"then, in it: bin/lace get backends",
	}
}
