package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// Config of a Kube.
type Config struct {
	Servers      []string       // addresses of API servers, tried in turn; empty: that of the kubeconfig
	Kubeconfig   string         // file with credentials; empty: the service account of this pod
	Node         string         // name of this node's Node object
	ServiceCIDRs []netip.Prefix // service ranges; empty: they are read from the API
	Version      string         // of the program, for the API servers' logs
	Log          *slog.Logger   // nil: slog.Default
}

// Kube is a source that reads an API server. Make one with New; Run may be called once.
type Kube struct {
	config  Config
	client  *client
	servers []*url.URL
	uids    sync.Map // model.Name of a Service → its UID
	stale   atomic.Uint64
}

var _ source.Source = (*Kube)(nil)

// New reads credentials and addresses, and speaks to nobody yet. The error says which of
// them is missing or makes no sense.
func New(c Config) (*Kube, error) {
	config, servers, err := access(&c)
	if err != nil {
		return nil, err
	}
	client, err := newClient(config, servers)
	if err != nil {
		return nil, fmt.Errorf("credentials for the API server: %w", err)
	}
	return assemble(c, client, servers), nil
}

func assemble(c Config, client *client, servers []*url.URL) *Kube {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Kube{config: c, client: client, servers: servers}
}

// Servers says which API servers are asked, for people.
func (k *Kube) Servers() (out []string) {
	for _, s := range k.servers {
		out = append(out, s.Host)
	}
	return out
}

// pace is how a stream tries again: soon, then about twice a second, for ever.
func pace() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3, Cap: 500 * time.Millisecond}
}

// Run implements source.Source. Servers that do not answer, or refuse, are a Problem and
// are tried for as long as ctx lasts; the source is synced when every stream was read to
// its end once.
func (k *Kube) Run(ctx context.Context, sink source.Sink) error {
	defer k.client.close()
	r := &run{kube: k, sink: sink, slices: newSlices(), nodes: make(map[model.Name]*corev1.Node), in: make(chan arrival), done: ctx.Done()}
	var reflectors sync.WaitGroup
	for _, s := range streams(k.client, len(k.config.ServiceCIDRs) == 0) {
		f := &flow{stream: s}
		r.flows = append(r.flows, f)
		reflectors.Go(func() { r.reflect(ctx, f) })
	}
	r.serve(ctx)
	reflectors.Wait()
	return nil
}

// flow is a stream that runs.
type flow struct {
	*stream
	outage outage
	listed bool
}

// run is one Run.
type run struct {
	kube   *Kube
	sink   source.Sink
	flows  []*flow
	slices slices
	nodes  map[model.Name]*corev1.Node
	in     chan arrival
	done   <-chan struct{}

	synced   bool
	problems []model.Problem
	ranges   map[model.Name][]netip.Prefix
}

// arrival is what one stream brings at a time.
type arrival struct {
	from *flow
	news []news
	list list
}

func (r *run) reflect(ctx context.Context, f *flow) {
	var quiet klog.Logger // what lasts becomes a Problem, which is logged once
	ctx = klog.NewContext(ctx, quiet)
	lw := f.listWatch(f.outage.told)
	store := newShelf(&r.kube.stale, func(n []news, l list) {
		select {
		case r.in <- arrival{f, n, l}:
		case <-r.done:
		}
	})
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, nil), f.example, store, cache.ReflectorOptions{
		Logger: &quiet, Name: f.what, TypeDescription: f.what, Backoff: pace(),
	}).RunWithContext(ctx)
}

// serve hands on what arrives until ctx ends.
func (r *run) serve(ctx context.Context) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-r.in:
			r.take(a)
		case <-look.C:
			r.complain()
		}
	}
}

func (r *run) take(a arrival) {
	var changes []source.Change
	for _, n := range a.news {
		if c, ok := r.change(a.from, n); ok {
			changes = append(changes, c)
		}
	}
	if a.list == rewind {
		changes = append(changes, r.slices.rewind()...)
	}
	if len(changes) > 0 {
		r.sink.Apply(changes, r.problems)
	}
	if a.from.listed = a.from.listed || a.list != part; r.synced || a.list == part {
		return
	}
	for _, f := range r.flows {
		if !f.listed {
			return
		}
	}
	r.synced = true
	r.kube.config.Log.Info("the API was read", "servers", r.kube.Servers())
	r.sink.Synced()
}

// change is what the sink is told of one object.
func (r *run) change(f *flow, n news) (source.Change, bool) {
	switch f.kind {
	case source.EndpointSlice:
		return r.slices.join(f.half, n)
	case source.Service:
		if n.object != nil {
			r.kube.uids.Store(n.name, n.object.GetUID())
		} else {
			r.kube.uids.Delete(n.name)
		}
	case source.ServiceCIDR:
		r.learn(n)
	case source.Node:
		if r.heartbeat(n) {
			return source.Change{}, false
		}
	}
	c := source.Change{Kind: f.kind, Name: n.name}
	if n.object != nil {
		c.Object = n.object
	}
	return c, true
}

// heartbeat says whether all that is new about a Node is its version, as it is every few
// minutes for every one of them.
func (r *run) heartbeat(n news) bool {
	now, ok := n.object.(*corev1.Node)
	if !ok {
		delete(r.nodes, n.name)
		return false
	}
	was := r.nodes[n.name]
	r.nodes[n.name] = now
	if was == nil {
		return false
	}
	same := *was
	same.ResourceVersion = now.ResourceVersion
	return reflect.DeepEqual(&same, now)
}

// learn notes a service range.
func (r *run) learn(n news) {
	if r.ranges == nil {
		r.ranges = make(map[model.Name][]netip.Prefix)
	}
	delete(r.ranges, n.name)
	if c, ok := n.object.(*networkingv1.ServiceCIDR); ok {
		for _, text := range c.Spec.CIDRs {
			if p, err := netip.ParsePrefix(text); err == nil { // whoever uses it says so
				r.ranges[n.name] = append(r.ranges[n.name], p)
			}
		}
	}
}

// complain tells the sink when what cannot be read has changed.
func (r *run) complain() {
	now := time.Now()
	var problems []model.Problem
	for _, f := range r.flows {
		if err := f.outage.lasting(now); err != nil {
			problems = appendNew(problems, complaint(f.stream, err, r.kube.Servers()))
		}
	}
	problems = append(problems, r.circles()...)
	if reflect.DeepEqual(problems, r.problems) {
		return
	}
	for _, p := range problems {
		if !contains(r.problems, p) {
			r.kube.config.Log.Warn(p.Message, "reason", p.Reason)
		}
	}
	if len(problems) == 0 {
		r.kube.config.Log.Info("the API can be read again")
	}
	r.problems = problems
	r.sink.Apply(nil, problems)
}

// circles finds API servers that are reached through Lace: the ranges may be known only
// now.
func (r *run) circles() (out []model.Problem) {
	var all []netip.Prefix
	for _, ps := range r.ranges {
		all = append(all, ps...)
	}
	for _, s := range r.kube.servers {
		if err := ownService(s, all); err != nil {
			out = append(out, model.Problem{Kind: "Source", Object: "kube", Reason: "ServedByLace", Message: err.Error() + " (--apiserver)"})
		}
	}
	return out
}

// appendNew adds a Problem whose object and field have none of its reason yet.
func appendNew(ps []model.Problem, p model.Problem) []model.Problem {
	for _, q := range ps {
		if q.Field == p.Field && q.Reason == p.Reason {
			return ps
		}
	}
	return append(ps, p)
}

func contains(ps []model.Problem, p model.Problem) bool {
	for _, q := range ps {
		if q == p {
			return true
		}
	}
	return false
}
