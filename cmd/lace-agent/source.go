package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/slowpath/agent"
	"lace-cni.io/lace/slowpath/source/dir"
	"lace-cni.io/lace/slowpath/source/kube"
)

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
	teller := kube.NewTeller(source)
	c.Source, c.SourceName, c.SourcePart, c.Tell = source, "kube", true, teller.Tell
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return teller.Run(ctx) })
	group.Go(func() error { return agent.Run(ctx, c) })
	return group.Wait()
}
