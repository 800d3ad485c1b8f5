package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/metrics"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/xdp"
)

// The observer is what the admin socket shows.
var _ adminserver.Node = (*observer)(nil)

// Ranges implements adminserver.Node.
func (o *observer) Ranges() []netip.Prefix {
	if s := o.publisher.State(); s != nil {
		return s.Ranges
	}
	return o.config.ServiceCIDRs
}

// Leaves implements adminserver.Node.
func (o *observer) Leaves(to netip.Addr) (string, error) {
	r, err := o.config.Stack.RouteTo(to)
	if errors.Is(err, netdev.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	links, err := o.config.Stack.Links()
	for _, l := range links {
		if l.Index == r.Device {
			return l.Name, nil
		}
	}
	return fmt.Sprintf("device %d", r.Device), err
}

// Tables implements adminserver.Node.
func (o *observer) Tables() (*table.Snapshot, error) { return table.Open(o.config.path("snapshot")) }

// Counts implements adminserver.Node.
func (o *observer) Counts() (*counter.Totals, *xdp.Counters) {
	totals, _ := readTotals(o.config.path("counters"))
	return totals, kernelCounters(o.config.BPFFS)
}

// Flows implements adminserver.Node.
func (o *observer) Flows() (adminserver.FlowTable, error) {
	t, err := openFlows(o.config.BPFFS)
	if err != nil {
		return nil, err // and not a typed nil
	}
	return t, nil
}

// Status implements adminserver.Node.
func (o *observer) Status() api.Status {
	f := look(o.config)
	waiting := o.waiting(f)
	s := api.Status{
		Version: o.config.Version, Node: o.config.NodeName, Mode: "lace",
		Ready: waiting == "", Waiting: waiting,
		Started: o.started.UTC(), Source: o.config.SourceName, Synced: !o.tally.read().synced.IsZero(),
		Fastpath: fastpathStatus(f), Repairs: o.mended.with(f.totals),
	}
	s.Generation.QueuedSince, s.Generation.Programming = o.publisher.Queued(), o.lastProgramming().Seconds()
	if f.totals != nil {
		s.Generation.InUse = f.totals.Gauges[counter.Generation]
	}
	if state := o.publisher.State(); state != nil {
		s.Generation.Published, s.Generation.PublishedAt = state.Generation, state.Published
		s.Objects = contents(state)
	}
	s.Objects.Problems = len(o.problems(f))
	return s
}

func (o *observer) lastProgramming() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.programming
}

func fastpathStatus(f fastpath) api.Fastpath {
	s := api.Fastpath{Alive: f.alive, Message: f.message}
	if f.alive {
		s.PID, s.Started, s.Kernel, s.Layouts = f.file.PID, f.file.Started, f.file.Kernel, f.file.SnapshotLayouts
		s.XDPMode, s.SocketMode = f.file.XDPMode, f.file.SocketMode
		s.Workers, s.Queues, s.TrunkMTU = f.file.Workers, f.file.Queues, f.file.TrunkMTU
		s.Sockets = f.file.Sockets
	}
	if f.totals == nil {
		return s
	}
	s.StartSeconds = time.Duration(f.totals.Gauges[counter.StartTook]).Seconds()
	s.Flows, s.HalfOpen, s.FlowsMax = f.totals.Gauges[counter.Flows], f.totals.Gauges[counter.HalfOpen], f.totals.Gauges[counter.FlowCapacity]
	for _, t := range f.totals.Reasons {
		s.Packets += t.Packets
		s.Bytes += t.Bytes
	}
	return s
}

// contents counts what was published.
func contents(state *publish.State) api.Objects {
	o := api.Objects{Services: len(state.Services), Ports: len(state.Attachments.Ports)}
	for _, svc := range state.Services {
		for i := range svc.Ports {
			for _, f := range svc.Ports[i].Frontends {
				if !f.AliasOf.IsValid() {
					o.Frontends++
				}
			}
			for _, c := range svc.Ports[i].Families {
				o.Backends += len(c.Endpoints)
			}
		}
	}
	return o
}

// reading is what a scrape shows.
func (o *observer) reading() metrics.Reading {
	f := look(o.config)
	r := metrics.Reading{
		Fastpath: metrics.Fastpath{Alive: f.alive, XDPMode: f.file.XDPMode, SocketMode: f.file.SocketMode},
		Go:       f.totals,
		Kernel:   kernelCounters(o.config.BPFFS),
	}
	r.Repairs = o.mended.with(f.totals)
	if f.totals != nil {
		r.Holes = blackhole.Current(f.totals.Holes, monotonic())
	}
	r.Published.Objects, r.Published.Queued = o.tally.read().objects, o.publisher.Queued()
	r.Changes = o.changes()
	r.Published.Problems = make(map[string]int)
	for _, p := range o.problems(f) {
		r.Published.Problems[p.Kind]++
	}
	state := o.publisher.State()
	if state == nil {
		return r
	}
	r.Published.Generation, r.Published.At, r.Published.Bytes = state.Generation, state.Published, state.Bytes
	r.WithoutLocal = withoutLocal(state.Services)
	c := contents(state)
	r.Devices = make(map[uint16]string, len(state.Attachments.Ports))
	for _, p := range state.Attachments.Ports {
		r.Devices[p.ID] = p.Device
	}
	r.Published.Programmed = map[string]int{
		"services": c.Services, "frontends": c.Frontends, "backends": c.Backends, "ports": c.Ports,
	}
	return r
}
