package main

import (
	"context"
	"errors"
	"fmt"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
)

// stage is a cluster with both sides on it.
type stage struct {
	*cluster.Cluster
	sides  []*side // in the order in which they take their first turns
	filled bool
}

// openStage starts a control plane with two nodes whose pods answer, and nothing yet that
// carries Services.
func openStage(ctx context.Context, o *options) (*stage, error) {
	c, err := cluster.Start(ctx, lab.Topology{})
	if err != nil {
		return nil, err
	}
	s := &stage{Cluster: c}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *stage) open(ctx context.Context, o *options) error {
	text, err := manifests.Files.ReadFile("nodes.yaml")
	if err != nil {
		return err
	}
	if err := s.CreateNodes(ctx, text); err != nil {
		return err
	}
	if err := s.AdmitAgents(ctx); err != nil {
		return err
	}
	lace, err := newSide(s.Cluster, "lace", s.Node("n1"), "shopper", "web-1")
	if err != nil {
		return err
	}
	lace.runs = &laceNode{s.Cluster, lace.node, o.agent, o.fastpath}
	s.sides = append(s.sides, lace)
	proxy, err := newSide(s.Cluster, "kube-proxy", s.Node("n2"), "visitor", "web-3")
	if err != nil {
		return err
	}
	proxy.runs = &proxyNode{s.Cluster, proxy.node, o.proxyPeriod}
	s.sides = append(s.sides, proxy)
	for _, side := range s.sides {
		if err := s.declare(ctx, side); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
	}
	return nil
}

// Close ends everything.
func (s *stage) Close() error {
	var errs []error
	for _, side := range s.sides {
		errs = append(errs, side.Close())
	}
	return errors.Join(append(errs, s.Cluster.Close())...)
}

// turn gives the sides in the order of a round: another one begins in each.
func (s *stage) turn(round int) []*side {
	n := round % len(s.sides)
	return append(append([]*side{}, s.sides[n:]...), s.sides[:n]...)
}
