package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/lab"
)

// proxyNode is a node with kube-proxy in nftables mode, with its default settings.
type proxyNode struct {
	cluster *cluster.Cluster
	node    *lab.Node
	period  time.Duration // its minSyncPeriod; 0: the default
}

func (p *proxyNode) start(ctx context.Context) error {
	flags := []string{"--proxy-mode", "nftables"}
	if p.period > 0 {
		flags = append(flags, "--iptables-min-sync-period", p.period.String()) // whatever the mode
	}
	return p.cluster.StartKubeProxyWith(ctx, p.node, flags...)
}

// complete counts the Services in the rules: they come in one transaction, so that the rest
// is there as soon as they are.
func (p *proxyNode) complete(ctx context.Context, services int) error {
	says, err := p.cluster.Run(ctx, p.node.Host, "nft", "list", "map", "ip", "kube-proxy", "service-ips")
	if err != nil {
		return err
	}
	if n := strings.Count(says, ": goto "); n < services {
		return fmt.Errorf("%d of %d Services", n, services)
	}
	return nil
}

func (p *proxyNode) clear(ctx context.Context) error {
	if err := p.cluster.StopRole(ctx, p.node, cluster.RoleKubeProxy); err != nil {
		return err
	}
	return p.cluster.CleanUpKubeProxy(ctx, p.node)
}

func (p *proxyNode) control() string    { return cluster.RoleKubeProxy }
func (p *proxyNode) programs() []string { return []string{cluster.RoleKubeProxy} }
