package dataplane

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/fastpath/affinity"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/fragment"
	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/worker"
	"lace-cni.io/lace/xdp"
)

// lace1 is the worker's end of the trunk, in the trunk's own network namespace.
const lace1 = "lace1"

// node is the running fast path of one node.
type node struct {
	config    Config
	objects   *xdp.Objects
	trunk     *xdp.Trunk
	flows     *conntrack.Table
	governor  *police.Governor
	clients   *affinity.Table
	alarms    alarms
	counters  *counter.File
	tables    tables
	ports     []*port.XSK
	workers   []*worker.Worker
	status    Status
	repairs   *repairs
	fragments *fragment.Table
}

// open brings up everything but the trunk. What was opened is closed again on error.
func open(c Config, r *repairs) (*node, error) {
	n := &node{config: c, status: newStatus(c), repairs: r}
	if err := n.bringUp(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// bringUp does the steps of open; after a failure, close takes down what is there.
func (n *node) bringUp() (err error) {
	c := &n.config
	if err := mounted(c.BPFFS); err != nil {
		return err
	}
	if n.objects, err = xdp.Open(xdp.Config{BPFFS: c.BPFFS, FlowSlots: c.FlowSlots, Log: c.Log, Repaired: n.repairs.kernel}); err != nil {
		return fmt.Errorf("kernel programs: %w", err)
	}
	if err := n.openFlows(); err != nil {
		return err
	}
	if err := n.openAffinity(); err != nil {
		return err
	}
	if n.counters, err = counter.Create(c.path(counterFile), c.Workers); err != nil {
		return err
	}
	n.repairs.use(n.counters)
	n.governor = police.NewGovernor(uint32(c.PuntRate), uint32(c.PuntBurst), n.objects.Allow)
	n.objects.Allow(n.governor.Limits()) // not what an earlier process allowed in its last moment
	n.tables.path, n.tables.kernel, n.tables.flows = c.path(snapshotFile), n.objects, n.flows
	n.tables.counters, n.tables.log = n.counters, c.Log
	n.tables.backends = backends{kernel: n.objects, flows: n.flows}
	if n.fragments, err = fragment.New(fragment.Default); err != nil {
		return err
	}
	n.noteFlows()
	return nil
}

// mapFlows makes a table of the pinned memory. Memory that is no flow table costs its
// flows and not the start: it is emptied, with a line in the log. The kernel's programs may
// be noting a packet in a slot meanwhile, so that emptying once may not be enough.
func (n *node) mapFlows() (flows *conntrack.Table, found conntrack.Report, err error) {
	for range 4 {
		flows, found, err = conntrack.Map(n.objects.FlowMemory())
		if !errors.Is(err, conntrack.ErrLayout) {
			break
		}
		n.config.Log.Warn("the pinned flow table is damaged and is started afresh", "error", err, "lostFlows", n.objects.ResetFlows())
	}
	return flows, found, err
}

// openFlows takes over the pinned flow table, repaired where a killed process left it in
// the middle of something.
func (n *node) openFlows() error {
	flows, found, err := n.mapFlows()
	if err != nil {
		return fmt.Errorf("flow table: %w", err)
	}
	n.flows = flows
	flows.SharePorts()
	if err := n.objects.SetFlowKeys(flows.Keys(), flows.Buckets()); err != nil {
		return fmt.Errorf("flow table: %w", err)
	}
	opened := n.objects.Opened()
	n.status.FlowSlots = 2 * flows.Cap()
	n.status.FlowsKept = opened.Kept && !found.Fresh
	n.status.FlowsLost, n.status.FlowsLostUnknown = opened.LostFlows, opened.Uncounted
	n.status.FlowsRestored, n.status.FlowsRepaired = found.Flows, found.Torn+found.Half+found.Damaged
	if len(opened.Replaced) > 0 {
		n.config.Log.Warn("pinned maps were of another make and were started afresh", "maps", opened.Replaced, "lostFlows", opened.Lost())
	}
	if n.status.FlowsRepaired > 0 {
		n.config.Log.Warn("the flow table was left in the middle of a write and was repaired", "removed", n.status.FlowsRepaired)
	}
	return nil
}

// openAffinity takes over who was given which backend.
func (n *node) openAffinity() error {
	mem, err := n.objects.OpenAffinity()
	if err != nil {
		return err
	}
	n.clients, err = affinity.Map(mem)
	return err
}

// sweepSlots gives the sweep to the first worker: one walk through the table is enough.
func (n *node) sweepSlots(queue int) int {
	if queue == 0 {
		return n.status.FlowSlots
	}
	return 0
}

// run serves until ctx is done or a part fails.
func (n *node) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for queue, w := range n.workers {
		group.Go(func() error {
			if err := w.Run(ctx); err != nil {
				return fmt.Errorf("queue %d: %w", queue, err)
			}
			return nil
		})
	}
	a := newAudit(ctx, n)
	a.report(a.sockets())
	group.Go(func() error { return n.tables.watch(ctx, a, n.measure) })
	return group.Wait()
}

// measure shows what only the flow table and the trunk know.
func (n *node) measure() {
	n.counters.Set(counter.Flows, uint64(n.flows.Len()))
	n.counters.Set(counter.HalfOpen, uint64(n.flows.HalfOpen()))
	n.alarm()
	// Without the trunk the workers end as well, and say so.
	if toGo, fromGo, err := n.trunk.Dropped(); err == nil {
		n.counters.Set(counter.TrunkDropped, toGo)
		n.counters.Set(counter.ReturnDropped, fromGo)
	}
	if err := n.counters.Failed(); err != nil {
		n.config.Log.Warn("counts cannot be shown, they go on in memory", "error", err)
	}
}

// ready notes how long the start took: the first time that the process comes so far.
func (n *node) ready() {
	r := n.repairs
	if r.startTook == 0 {
		var err error
		if r.startTook, err = age(); err != nil {
			n.config.Log.Warn("how long the start took is not known", "error", err)
		}
	}
	n.counters.Set(counter.StartTook, uint64(r.startTook))
	n.status.StartSeconds = r.startTook.Seconds()
}

func (n *node) noteFlows() {
	n.counters.Set(counter.FlowCapacity, uint64(n.flows.Room()))
	n.counters.Set(counter.Restored, uint64(n.status.FlowsRestored))
	n.counters.Set(counter.RepairedFlows, uint64(n.status.FlowsRepaired))
}

// close takes down what does not outlive the process; the trunk must have been lowered.
func (n *node) close() error {
	errs := []error{n.tables.close()}
	n.repairs.use(nil)
	if n.counters != nil {
		errs = append(errs, n.counters.Close())
	}
	if n.objects != nil {
		errs = append(errs, n.objects.Close())
	}
	return errors.Join(errs...)
}
