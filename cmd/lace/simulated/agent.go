package simulated

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/dir"
	"lace-cni.io/lace/xdp"
)

// agent is the control path of n1: the parts of the real agent, over a network stack that
// is played.
type agent struct {
	node      *node
	manifests string
	stack     netdev.Stack
	log       *slog.Logger

	folder    *dir.Dir
	publisher *publish.Publisher
	started   time.Time
	latency   atomic.Int64 // of the last publication, nanoseconds
	synced    atomic.Bool
}

// nodeName is the one node that is simulated.
const nodeName = "n1"

func (a *agent) snapshotPath() string { return filepath.Join(a.node.stateDir, "snapshot") }
func (a *agent) socketPath() string   { return filepath.Join(a.node.stateDir, "agent.sock") }

// run is the agent's life. It is new after every kill, but for the snapshot file.
func (a *agent) run(ctx context.Context) error {
	a.started = time.Now()
	a.synced.Store(false)
	var err error
	settings := table.DefaultSettings()
	settings.Lane = 0 // there is no kernel that could carry anything
	a.publisher, err = publish.New(publish.Config{
		Node: nodeName, Path: a.snapshotPath(), Log: a.log, Settings: settings, Ranges: lab.ServiceRanges,
		Latency: func(d time.Duration) { a.latency.Store(int64(d)) },
	})
	if err != nil {
		return err
	}
	a.folder = dir.New(a.manifests)
	a.folder.Log = a.log
	server, err := adminserver.New(adminserver.Config{Socket: a.socketPath(), Node: a, Log: a.log})
	if err != nil {
		return err
	}
	follower := attach.New(attach.Config{Node: nodeName, Stack: a.stack, Ranges: lab.ServiceRanges, Known: a.knownPorts(), Log: a.log})
	parts := []*process{
		start(server.Run),
		start(a.publisher.Run),
		start(func(ctx context.Context) error { return follower.Run(ctx, a.publisher.SetAttachments) }),
		start(func(ctx context.Context) error { return a.folder.Run(ctx, sink{a}) }),
	}
	<-ctx.Done()
	for _, p := range parts {
		if e := p.kill(); err == nil {
			err = e
		}
	}
	return err
}

// knownPorts are those of the last snapshot, so that ids go on after a restart.
func (a *agent) knownPorts() []table.Port {
	s, err := table.Open(a.snapshotPath())
	if err != nil {
		return nil
	}
	defer s.Close()
	return append([]table.Port(nil), s.Ports()...)
}

// sink notes that the folder has been read, and passes everything on.
type sink struct{ *agent }

func (s sink) Apply(c []source.Change, p []problem) { s.publisher.Apply(c, p) }

func (s sink) Synced() {
	s.publisher.Synced()
	s.synced.Store(true)
}

// Status implements adminserver.Node.
func (a *agent) Status() api.Status {
	st := api.Status{
		Version: "simulated", Simulated: true, Node: nodeName, Mode: "lace", Started: a.started,
		Source: a.manifests, Synced: a.synced.Load(),
	}
	st.Generation.Programming = time.Duration(a.latency.Load()).Seconds()
	if s := a.State(); s != nil {
		st.Generation.Published, st.Generation.PublishedAt = s.Generation, s.Published
		st.Objects = api.Objects{Services: len(s.Services), Ports: len(s.Attachments.Ports), Problems: len(s.Problems)}
	}
	st.Fastpath = a.fastpathStatus(&st)
	st.Ready = st.Synced && st.Generation.Published > 0 && st.Fastpath.Alive && st.Generation.InUse == st.Generation.Published
	if !st.Ready {
		st.Waiting = "the simulated node to use what the folder says"
	}
	return st
}

func (a *agent) fastpathStatus(st *api.Status) api.Fastpath {
	f := api.Fastpath{
		Alive: a.node.serving.Load(), XDPMode: "none", SocketMode: "memory",
		Workers: 1, Queues: 1, TrunkMTU: frameSize, Kernel: "(none)",
	}
	totals, _ := a.Counts()
	if totals == nil {
		return f
	}
	st.Generation.InUse = totals.Gauges[counter.Generation]
	f.Flows, f.FlowsMax = totals.Gauges[counter.Flows], totals.Gauges[counter.FlowCapacity]
	f.HalfOpen, f.Packets = totals.Gauges[counter.HalfOpen], totals.Events[counter.Received]
	return f
}

// State implements adminserver.Node.
func (a *agent) State() *publish.State { return a.publisher.State() }

// Place implements adminserver.Node.
func (a *agent) Place(p problem) source.Place { return a.folder.Place(p) }

// Tables implements adminserver.Node.
func (a *agent) Tables() (*table.Snapshot, error) { return table.Open(a.snapshotPath()) }

// Counts implements adminserver.Node. There is no kernel that could count.
func (a *agent) Counts() (*counter.Totals, *xdp.Counters) {
	r, err := counter.Open(filepath.Join(a.node.stateDir, "counters"))
	if err != nil {
		return nil, nil
	}
	defer r.Close()
	t := r.Totals()
	return &t, nil
}

// Flows implements adminserver.Node.
func (a *agent) Flows() (adminserver.FlowTable, error) {
	r, err := conntrack.View(a.node.slots, a.node.tags)
	if err != nil {
		return nil, fmt.Errorf("flow table of the simulated node: %w", err)
	}
	return view{r}, nil
}

// view is a reader that has nothing to close.
type view struct{ *conntrack.Reader }

func (view) Close() error { return nil }

// Ranges implements adminserver.Node.
func (a *agent) Ranges() []netip.Prefix { return lab.ServiceRanges }

// Leaves implements adminserver.Node: the simulated node routes the service ranges to the
// trunk, and all else to its uplink.
func (a *agent) Leaves(to netip.Addr) (string, error) {
	for _, p := range lab.ServiceRanges {
		if p.Contains(to) {
			return attach.Trunk, nil
		}
	}
	return "eth0", nil
}
