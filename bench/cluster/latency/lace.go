package main

import (
	"context"
	"fmt"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/lab"
)

// laceNode is a node with both commands of Lace, with their default settings.
type laceNode struct {
	cluster         *cluster.Cluster
	node            *lab.Node
	agent, fastpath string
}

func (l *laceNode) start(ctx context.Context) error {
	if err := l.cluster.StartLaceFastpath(ctx, l.node, l.fastpath); err != nil {
		return err
	}
	return l.cluster.StartLaceAgent(ctx, l.node, l.agent)
}

func (l *laceNode) complete(ctx context.Context, services int) error {
	admin := l.node.Admin()
	defer admin.Close()
	s, err := admin.Status(ctx)
	switch g := s.Generation; {
	case err != nil:
		return err
	case !s.Ready:
		return fmt.Errorf("it waits for %s", s.Waiting)
	case s.Objects.Services < services:
		return fmt.Errorf("%d of %d Services", s.Objects.Services, services)
	case g.InUse == 0 || g.InUse < g.Published:
		return fmt.Errorf("generation %d is published, %d in use", g.Published, g.InUse)
	}
	return nil
}

func (l *laceNode) clear(ctx context.Context) error {
	for _, role := range l.programs() {
		if err := l.cluster.StopRole(ctx, l.node, role); err != nil {
			return err
		}
	}
	return l.cluster.CleanUpLace(ctx, l.node)
}

func (l *laceNode) control() string { return cluster.RoleLaceAgent }
func (l *laceNode) programs() []string {
	return []string{cluster.RoleLaceAgent, cluster.RoleLaceFastpath}
}
