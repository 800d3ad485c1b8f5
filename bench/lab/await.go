package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// lookEvery is how often a condition is looked at: far below what is being timed.
const lookEvery = 2 * time.Millisecond

// await looks until done, and says what is missing when ctx ends.
func await(ctx context.Context, what string, done func() error) error {
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		}
	}
}

// Admin is a client of the node's agent.
func (n *Node) Admin() *api.Client { return api.NewClient(n.StatePath("agent.sock")) }

// AwaitReady waits until every node's agent says that it is ready and every worker goes
// by the newest snapshot.
func (l *Lab) AwaitReady(ctx context.Context) error {
	for _, n := range l.Nodes() {
		if err := n.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AwaitReady waits until the node's agent says that it is ready and every worker goes by
// the newest snapshot.
func (n *Node) AwaitReady(ctx context.Context) error {
	admin := n.Admin()
	defer admin.Close()
	return await(ctx, n.Name+" is not ready", func() error {
		s, err := admin.Status(ctx)
		switch {
		case err != nil:
			return err
		case !s.Ready:
			return fmt.Errorf("it waits for %s", s.Waiting)
		}
		return inUse(s)
	})
}

// inUse reports a snapshot that is not in use yet.
func inUse(s api.Status) error {
	if g := s.Generation; g.InUse == 0 || g.InUse < g.Published {
		return fmt.Errorf("generation %d is published, %d in use", g.Published, g.InUse)
	}
	return nil
}

// AwaitService waits until every node forwards a Service of the default namespace exactly
// to these endpoints, in the states that they have.
func (l *Lab) AwaitService(ctx context.Context, service string, endpoints []manifests.Endpoint) error {
	for _, n := range l.Nodes() {
		admin := n.Admin()
		err := AwaitService(ctx, admin, service, endpoints)
		admin.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// AwaitService waits until one node does, as its agent tells.
func AwaitService(ctx context.Context, admin *api.Client, service string, endpoints []manifests.Endpoint) error {
	want := wanted(endpoints)
	return await(ctx, "Service "+service+" is not as it is declared", func() error {
		if err := known(ctx, admin, service); err != nil {
			return err
		}
		backends, err := admin.Backends(ctx)
		if err != nil {
			return err
		}
		if got := reported(backends.Items, service); !slices.Equal(got, want) {
			return fmt.Errorf("endpoints are %q, want %q", got, want)
		}
		s, err := admin.Status(ctx)
		if err != nil {
			return err
		}
		return inUse(s)
	})
}

func known(ctx context.Context, admin *api.Client, service string) error {
	services, err := admin.Services(ctx)
	if err != nil {
		return err
	}
	for _, s := range services.Items {
		if s.Namespace == "default" && s.Name == service {
			return nil
		}
	}
	return fmt.Errorf("no such Service")
}

// wanted and reported write endpoints in one form that can be compared, sorted.
func wanted(endpoints []manifests.Endpoint) (out []string) {
	for _, e := range endpoints {
		for _, addr := range []fmt.Stringer{e.Addr4, e.Addr6} {
			c := e.Conditions()
			out = append(out, fmt.Sprintf("%s ready=%v serving=%v terminating=%v", addr, c.Ready, c.Serving, c.Terminating))
		}
	}
	slices.Sort(out)
	return out
}

func reported(backends []api.Backend, service string) (out []string) {
	for _, b := range backends {
		if b.Namespace != "default" || b.Service != service {
			continue
		}
		text := fmt.Sprintf("%s ready=%v serving=%v terminating=%v", b.Address, b.Ready, b.Serving, b.Terminating)
		if !slices.Contains(out, text) { // one line per port
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}
