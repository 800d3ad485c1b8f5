package simulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/cmd/lace/acts"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// Stage implements acts.Stage without a kernel.
type Stage struct {
	folder  string
	keep    bool
	log     *os.File
	network *network
	node    *node
	agent   *agent
	admin   *api.Client
	stop    chan struct{} // ends the network
	ended   sync.WaitGroup

	mu    sync.Mutex
	alive *process // the agent
}

var _ acts.Stage = (*Stage)(nil)

// Start makes the hosts and starts both processes. source is YAML to begin with; empty:
// that of the lab.
func Start(_ context.Context, source string, keep bool) (s *Stage, err error) {
	folder, err := os.MkdirTemp("", "lace-sim-")
	if err != nil {
		return nil, err
	}
	s = &Stage{folder: folder, keep: keep, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := lab.CopyManifests(source, s.Manifests()); err != nil {
		return s, err
	}
	if s.log, err = os.Create(filepath.Join(folder, "log")); err != nil {
		return s, err
	}
	if s.node, err = newNode(folder); err != nil {
		return s, err
	}
	s.network = newNetwork()
	s.network.node = s.node
	s.populate()
	stack, err := playedStack(s.network)
	if err != nil {
		return s, err
	}
	s.agent = &agent{node: s.node, manifests: s.Manifests(), stack: stack, log: slog.New(slog.NewTextHandler(s.log, nil))}
	s.admin = api.NewClient(s.agent.socketPath())
	s.ended.Go(func() { s.network.run(s.stop) })
	if err := s.node.startFastpath(); err != nil {
		return s, err
	}
	s.alive = start(s.agent.run)
	return s, nil
}

// populate makes the hosts that the demo needs.
func (s *Stage) populate() {
	n := s.network
	n.add("web-1", "web-1", "10.244.1.11", "fd00:10:244:1::11").Listen(lab.WebTarget)
	n.add("web-2", "web-2", "10.244.1.12", "fd00:10:244:1::12").Listen(lab.WebTarget)
	n.add("web-3", uplink, "10.244.2.11", "fd00:10:244:2::11").Listen(lab.WebTarget)
	n.add("shopper", "shopper", "10.244.1.13", "fd00:10:244:1::13")
	n.add(nodeName, trunk, "172.30.0.11", "fd30::11")
	n.add(lab.OutsideName, uplink, "172.30.0.100", "fd30::100")
}

// Close ends everything. Frames that no host should have got are an error.
func (s *Stage) Close() (err error) {
	if s.alive != nil {
		err = errors.Join(err, s.alive.kill())
		s.admin.Close()
	}
	if s.node != nil && s.node.running != nil {
		err = errors.Join(err, s.node.killFastpath())
	}
	close(s.stop)
	s.ended.Wait()
	if s.log != nil {
		s.log.Close()
	}
	err = errors.Join(err, s.wrong())
	if s.keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

func (s *Stage) wrong() (err error) {
	if s.network == nil {
		return nil
	}
	for _, m := range s.network.members {
		for _, w := range m.Wrong() {
			err = errors.Join(err, fmt.Errorf("%s received a bad frame: %w", m.Name, w))
		}
	}
	return err
}

// Label says what carries the packets.
func (s *Stage) Label() string { return "packets in memory, no kernel" }

// Simulated says yes.
func (s *Stage) Simulated() bool { return true }

// Ready waits for the node.
func (s *Stage) Ready(ctx context.Context) error {
	return await(ctx, func() error {
		st, err := s.admin.Status(ctx)
		if err == nil && !st.Ready {
			err = fmt.Errorf("n1 waits for %s; log: %s", st.Waiting, s.log.Name())
		}
		return err
	})
}

// await looks until done.
func await(ctx context.Context, done func() error) error {
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Status of the one node.
func (s *Stage) Status(ctx context.Context) ([]api.Status, error) {
	st, err := s.admin.Status(ctx)
	return []api.Status{st}, err
}

// Backends as the agent has them.
func (s *Stage) Backends(ctx context.Context) ([]api.Backend, error) {
	list, err := s.admin.Backends(ctx)
	return list.Items, err
}

// Drops as the agent has them.
func (s *Stage) Drops(ctx context.Context) ([]api.Drop, error) {
	list, err := s.admin.Drops(ctx)
	return list.Items, err
}

// Problems that the agent has.
func (s *Stage) Problems(ctx context.Context) ([]api.Problem, error) {
	list, err := s.admin.Problems(ctx)
	return list.Items, err
}

// Explain asks the agent.
func (s *Stage) Explain(ctx context.Context, from, to string) (api.Explanation, error) {
	return s.admin.Explain(ctx, from, to)
}

// Manifests is the folder of YAML.
func (s *Stage) Manifests() string { return filepath.Join(s.folder, "manifests") }

// Tells where the log is, and how another terminal asks the agent.
func (s *Stage) Tells() []string {
	return []string{
		"log: " + filepath.Join(s.folder, "log"),
		"another terminal: export LACE_STATE_DIR=" + s.folder,
		"then, in it: bin/lace get backends",
	}
}

// Web are the three pods, all ready.
func (s *Stage) Web() (out []manifests.Endpoint) {
	for _, name := range lab.WebPods {
		m := s.network.named(name)
		e := manifests.Endpoint{Pod: name, Node: nodeName, Zone: "a", Addr4: m.Addr4, Addr6: m.Addr6}
		if m.device == uplink {
			e.Node, e.Zone = "n2", "b"
		}
		out = append(out, e)
	}
	return out
}

// SetWeb saves web's endpoints and waits for the node.
func (s *Stage) SetWeb(ctx context.Context, endpoints []manifests.Endpoint) (p acts.Programmed, err error) {
	b, err := manifests.Slices("web", lab.WebPorts, endpoints)
	if err != nil {
		return p, err
	}
	p.Saved = time.Now()
	if err := manifests.Save(s.Manifests(), "web-endpoints.yaml", b); err != nil {
		return p, err
	}
	err = lab.AwaitService(ctx, s.admin, "web", endpoints)
	p.InUse = time.Now()
	return p, err
}

// Kill ends the goroutines of a process.
func (s *Stage) Kill(_ context.Context, p acts.Process) error {
	if p == acts.Fastpath {
		return s.node.killFastpath()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive.kill()
}

// Start starts a process again.
func (s *Stage) Start(_ context.Context, p acts.Process) error {
	if p == acts.Fastpath {
		return s.node.startFastpath()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = start(s.agent.run)
	return nil
}
