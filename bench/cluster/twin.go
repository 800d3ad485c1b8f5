package cluster

import (
	"context"
	"errors"

	"lace-cni.io/lace/bench/lab"
)

// Twin builds a second lab with the same cast and the same addresses, whose nodes read from
// this cluster's API server; see Reach. So one node of the cluster can be carried by two
// proxies that do not meet. Close it before the cluster.
func (c *Cluster) Twin(ctx context.Context, t lab.Topology) (*Cluster, error) {
	l, err := lab.Start(ctx, t)
	if err != nil {
		return nil, err
	}
	end, err := c.Reach(l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Cluster{Lab: l, API: c.API, binary: c.binary, keys: c.keys, server: c.server, ends: []func() error{end}}, nil
}
