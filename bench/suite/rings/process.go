package rings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/fastpath/worker"
	"lace-cni.io/lace/xdp"
)

// Config of the process; the fields mean what they mean to the product's fast path.
type Config struct {
	StateDir  string
	BPFFS     string
	FlowSlots int
	TrunkMTU  int
}

// CounterFile in the state directory; its generation says which snapshot is in use.
const CounterFile = "counters"

type process struct {
	config   Config
	objects  *xdp.Objects
	trunk    *xdp.Trunk
	flows    *conntrack.Table
	counters *counter.File
	snapshot atomic.Pointer[table.Snapshot]
}

// Run forwards with one worker until ctx is done. It must run in the node's namespaces.
func Run(ctx context.Context, c Config) error {
	p := &process{config: c}
	if err := p.open(); err != nil {
		return err
	}
	w, socket, err := p.connect()
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Run(ctx) })
	group.Go(func() error { return p.follow(ctx) })
	if err := p.objects.SetSocket(0, socket.Descriptor()); err != nil {
		return err
	}
	return group.Wait()
}

func (p *process) open() (err error) {
	c := p.config
	if p.objects, err = xdp.Open(xdp.Config{BPFFS: c.BPFFS, FlowSlots: c.FlowSlots}); err != nil {
		return err
	}
	if p.flows, _, err = conntrack.Map(p.objects.FlowMemory()); err != nil {
		return err
	}
	if err := p.objects.SetFlowKeys(p.flows.Keys(), p.flows.Buckets()); err != nil {
		return err
	}
	if p.trunk, err = xdp.OpenTrunk(xdp.TrunkConfig{StateDir: c.StateDir, Queues: 1, MTU: c.TrunkMTU}); err != nil {
		return err
	}
	if err := p.objects.AttachTrunk(p.trunk); err != nil {
		return err
	}
	p.counters, err = counter.Create(filepath.Join(c.StateDir, CounterFile), 1)
	return err
}

func (p *process) connect() (*worker.Worker, *Port, error) {
	var socket *Port
	err := p.trunk.Do(func() (err error) {
		socket, err = Open(p.trunk.Lace1, 0)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return worker.New(worker.Config{
		Port: socket, Pipeline: pipeline.New(pipeline.Config{Flows: p.flows}),
		Snapshot: &p.snapshot, Counters: p.counters.Worker(0), SweepSlots: 2 * p.flows.Cap(),
	}), socket, nil
}

// follow takes each new snapshot into use. Old ones stay mapped: there are few.
func (p *process) follow(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := p.look(); err != nil {
			slog.Error("snapshot not in use", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *process) look() error {
	next, err := table.Open(filepath.Join(p.config.StateDir, "snapshot"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if old := p.snapshot.Load(); old != nil && old.Generation() == next.Generation() {
		return next.Close()
	}
	p.snapshot.Store(next)
	if err := errors.Join(p.objects.WidenBackends(backends(next)), p.objects.SyncPorts(next.Ports()), p.objects.SyncSources(next.Addresses()), p.objects.SyncClaims(claims(next))); err != nil {
		return fmt.Errorf("generation %d: %w", next.Generation(), err)
	}
	p.counters.Set(counter.Generation, next.Generation())
	return nil
}

// backends are the addresses from which replies come.
func backends(s *table.Snapshot) (out []packet.Addr) {
	for _, b := range s.Backends() {
		out = append(out, b.Addr)
	}
	return out
}

func claims(s *table.Snapshot) (out []xdp.Claim) {
	s.VIPs(func(network packet.NetworkID, a packet.Addr) bool {
		out = append(out, xdp.Claim{Network: network, Addr: a})
		return true
	})
	return out
}
