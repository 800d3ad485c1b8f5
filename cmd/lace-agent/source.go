package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/slowpath/agent"
	"lace-cni.io/lace/slowpath/source/dir"
	"lace-cni.io/lace/slowpath/source/kube"
)

// resolveFor is how long the start waits for the addresses of API servers that are given by
// name.
const resolveFor = 2 * time.Second

// serve runs the agent on the source that the flags ask for.
func (o *options) serve(ctx context.Context, c agent.Config) error {
	if !o.fromAPI() {
		source := dir.New(o.sourceDir)
		source.Log = c.Log
		c.Source, c.SourceName = source, "dir:"+o.sourceDir
		return agent.Run(ctx, c)
	}
	source, err := kube.New(kube.Config{
		Servers: o.apiservers, Kubeconfig: o.kubeconfig, Node: o.nodeName,
		ServiceCIDRs: o.ranges, Version: version, Log: c.Log,
	})
	if err != nil {
		return err
	}
	resolving, done := context.WithTimeout(ctx, resolveFor)
	c.APIServers = source.Places(resolving)
	done()
	teller := kube.NewTeller(source)
	c.Source, c.SourceName, c.SourcePart, c.Tell = source, "kube", true, teller.Tell
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return teller.Run(ctx) })
	group.Go(func() error { return agent.Run(ctx, c) })
	return group.Wait()
}
