package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/right"
	"lace-cni.io/lace/fastpath/statedir"
	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/slowpath/kubeproxy"
	"lace-cni.io/lace/slowpath/metrics"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/servicehealth"
)

// Run serves the node until ctx is done, which is no error. It returns early only when it
// cannot start, or when one of its parts failed in a way that a new start is the remedy
// for. What was published, and the routes of the service ranges, stay in every case. The
// error of a process that was refused something says which right it lacks.
func Run(ctx context.Context, c Config) error {
	return right.Explain(run(ctx, c), right.NetAdmin, right.BPF)
}

func run(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return err
	}
	if err := c.refuseBesideProxy(kubeproxy.Look()); err != nil {
		return err
	}
	if err := statedir.Make(c.StateDir); err != nil {
		return err
	}
	held, err := lock(c.path("agent.lock"), "lace-agent")
	if errors.Is(err, ErrInUse) {
		return fmt.Errorf("%w, or use another state directory (--state-dir)", err)
	}
	if err != nil {
		return err
	}
	defer held.Close()
	if c.Stack == nil {
		k, err := netdev.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		c.Stack = k
	}
	return serve(ctx, &c)
}

// lean gives memory back once the first tables are published: reading everything at once
// takes a multiple of what is kept, and a node's memory is the pods'.
func lean(ctx context.Context, p *publish.Publisher) error {
	for {
		changed := p.Changed()
		if p.State() != nil {
			debug.FreeOSMemory()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// part is something that runs until its context ends.
type part func(context.Context) error

// serve builds the parts, runs them together and ends with the first that fails.
func serve(ctx context.Context, c *Config) error {
	var seen *observer
	var m *metrics.Metrics
	var follower *attach.Follower
	var asked *servicehealth.Set
	var used *applied
	mended := newRepairs()
	publisher, err := publish.New(publish.Config{
		Node: c.NodeName, Path: c.path("snapshot"), Settings: c.Settings, At: c.NodePorts, Log: c.Log,
		Reserved: c.APIServers, AgentPorts: c.ports(), Partial: c.SourcePart, Ranges: c.ServiceCIDRs, Ranged: func(all []netip.Prefix) { follower.SetRanges(all) },
		Latency:  func(d time.Duration) { m.Programmed(d); seen.programmed(d) },
		Took:     func(d time.Duration) { m.PublishTook(d) },
		Repaired: mended.note(repairSnapshot), Taken: c.taken,
		Written: func(p publish.Publication) { used.written(p) },
		Coming:  func(s *publish.State) { asked.Announce(s.Generation, s.Services, s.Node.NodePorts) },
	})
	if err != nil {
		return err
	}
	tally := newTally(publisher, c.NodeName)
	seen = newObserver(c, publisher, tally, mended)
	seen.ports, seen.proxies, seen.forwarding, seen.pathless = newPortWatch(c), newProxyWatch(c), newForwardingWatch(c), newPathlessWatch(c)
	told := &herald{publisher: publisher, seen: seen, empty: newEmptiness(c.NodeName), to: c.Tell, wake: newBell()}
	seen.ports.standing.changed, seen.forwarding.standing.changed, seen.pathless.standing.changed = told.wake.ring, told.wake.ring, told.wake.ring
	asked = servicehealth.New(servicehealth.Config{Node: c.NodeName, Look: seen.sight, All: !c.NodePorts.Restricted(), Own: c.ports(), Changed: told.wake.ring, Log: c.Log})
	seen.asked = asked
	m = metrics.New(c.Version, seen.reading)
	used = newApplied(c.path("counters"), m)
	seen.applied = used

	servers, err := c.listen(seen, m, mended)
	if err != nil {
		return err
	}
	follower = attach.New(attach.Config{
		Node: c.NodeName, Stack: c.Stack, Ranges: c.ServiceCIDRs, Known: c.knownPorts(), Delivery: c.Delivery, Log: c.Log,
		Repaired: mended.note(repairRoute), Aliases: []netip.Prefix{model.Alias4, model.Alias6},
	})
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range append(servers,
		publisher.Run,
		func(ctx context.Context) error { return c.Source.Run(ctx, tally) },
		func(ctx context.Context) error { return follower.Run(ctx, publisher.SetAttachments) },
		func(ctx context.Context) error { return routeExternal(ctx, publisher, follower) },
		func(ctx context.Context) error { return seen.ports.run(ctx, publisher.State) },
		func(ctx context.Context) error { return seen.forwarding.run(ctx, publisher.State) },
		func(ctx context.Context) error { return seen.pathless.run(ctx, publisher.State) },
		seen.proxies.run,
		asked.Run,
		used.run,
		seen.run,
		told.run,
		func(ctx context.Context) error { return lean(ctx, publisher) },
	) {
		group.Go(func() error { return run(ctx) })
	}
	c.Log.Info("serving", "node", c.NodeName, "source", c.SourceName, "stateDir", c.StateDir,
		"serviceCIDRs", c.ServiceCIDRs, "health", c.HealthAddr, "metrics", c.MetricsAddr, "version", c.Version)
	return group.Wait()
}
