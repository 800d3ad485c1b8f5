package acts

import (
	"context"
	"fmt"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// drain takes one endpoint out of service the gentle way while streams run through it,
// then all of them: streams go on, new connections avoid the one that is going as long as
// another one is there, and use those that still serve when no other is left.
func drain(ctx context.Context, s *scene) (string, error) {
	client := s.Clients()[0].Name
	stream, err := s.StartStream(ctx, client, traffic.Stream{Request: s.call("tcp"), Count: 12, Every: 5 * 1e6})
	if err != nil {
		return "", err
	}
	stopped := false
	defer func() {
		if !stopped {
			stream.Stop(context.WithoutCancel(ctx))
		}
	}()
	p, err := stream.Progress(ctx)
	if err != nil {
		return "", err
	}
	leaving := most(p.Servers)
	if _, err := s.setWeb(ctx, with(s.Web(), manifests.Draining, leaving)); err != nil {
		return "", err
	}
	t, err := s.Burst(ctx, client, traffic.Burst{Request: s.call("tcp"), Count: 100})
	if err != nil {
		return "", err
	}
	if t.Failed() > 0 || t.Servers[leaving] > 0 {
		return "", fmt.Errorf("while %s drains: %d of %d new connections failed, %d went to it", leaving, t.Failed(), t.Attempts, t.Servers[leaving])
	}
	all, err := drainAll(ctx, s, client)
	if err != nil {
		return "", err
	}
	stopped = true
	if p, err = stream.Stop(ctx); err != nil {
		return "", err
	}
	if p.Broken > 0 {
		return "", fmt.Errorf("%d of %d streams broke: %s", p.Broken, p.Flows, p.First)
	}
	return fmt.Sprintf("%s drains with %d of %d streams on it: 0 broken; %d new connections avoid it; with all draining, %d more are answered",
		leaving, p.Servers[leaving], p.Flows, t.Attempts, all.Attempts), nil
}

func drainAll(ctx context.Context, s *scene, client string) (traffic.Tally, error) {
	web := s.Web()
	for i := range web {
		web[i].State = manifests.Draining
	}
	if _, err := s.setWeb(ctx, web); err != nil {
		return traffic.Tally{}, err
	}
	t, err := s.Burst(ctx, client, traffic.Burst{Request: s.call("tcp"), Count: 50})
	if err == nil && t.Failed() > 0 {
		err = fmt.Errorf("with all endpoints draining, %d of %d connections failed: %s", t.Failed(), t.Attempts, t.First)
	}
	return t, err
}

// most is the key with the largest count, the first one in order among equals.
func most(counts map[string]int) (name string) {
	for k, n := range counts {
		if name == "" || n > counts[name] || n == counts[name] && k < name {
			name = k
		}
	}
	return name
}
