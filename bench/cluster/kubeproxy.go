package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/slowpath/agent"
)

// kubeProxyUser is the user to which the API server gives kube-proxy's rights by itself.
const kubeProxyUser = "system:kube-proxy"

// podRanges hold the lab's pods: kube-proxy keeps their addresses where they are clients.
const podRanges = "10.244.0.0/16,fd00:10:244::/48"

// kubeProxyBinary is where make cluster-binaries puts kube-proxy, beside the control plane.
func kubeProxyBinary() (string, error) {
	plane, err := Binary()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(plane), "node")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no kube-proxy, run make cluster-binaries: %w", err)
	}
	return path, nil
}

// RequiredKubeProxy is Required where kube-proxy runs, too: its binary and the programs by
// which it lays its rules and a test looks at them.
func RequiredKubeProxy(t testing.TB) {
	t.Helper()
	Required(t)
	_, err := kubeProxyBinary()
	for _, program := range []string{"nft", "iptables", "conntrack"} {
		_, missing := exec.LookPath(program)
		err = errors.Join(err, missing)
	}
	switch {
	case err == nil:
	case os.Getenv("LACE_REQUIRE_CLUSTER") == "1":
		t.Fatalf("%v; LACE_REQUIRE_CLUSTER=1 forbids the skip", err)
	default:
		t.Skip(err)
	}
}

// StartKubeProxy starts a node's kube-proxy in a mode, "nftables" or "iptables".
func (c *Cluster) StartKubeProxy(ctx context.Context, n *lab.Node, mode string) error {
	return c.startKubeProxy(ctx, n, c.server, "--proxy-mode", mode)
}

func (c *Cluster) startKubeProxy(ctx context.Context, n *lab.Node, server string, args ...string) error {
	binary, err := kubeProxyBinary()
	if err != nil {
		return err
	}
	if _, err := c.keys.client(kubeProxyUser); err != nil {
		return err
	}
	config, err := c.keys.kubeconfig(kubeProxyUser, server)
	if err != nil {
		return err
	}
	args = append([]string{
		"--kubeconfig", config, "--hostname-override", n.Name,
		"--cluster-cidr", podRanges, "--conntrack-max-per-core", "0",
	}, args...)
	_, err = c.StartProgram(ctx, n.Host, roleKubeProxy, componentSpec{binary, args})
	return err
}

// StopKubeProxy ends a node's kube-proxy. Its rules stay.
func (c *Cluster) StopKubeProxy(ctx context.Context, n *lab.Node) error {
	return c.SignalProgram(ctx, n.Host, roleKubeProxy, syscall.SIGTERM)
}

// CleanUpKubeProxy runs kube-proxy --cleanup on a node.
func (c *Cluster) CleanUpKubeProxy(ctx context.Context, n *lab.Node) error {
	binary, err := kubeProxyBinary()
	if err != nil {
		return err
	}
	_, err = runIn(ctx, n.PID(), binary, "kube-proxy", "--cleanup")
	return err
}

// CleanUpLace does on a node what lace-agent --cleanup does.
func (c *Cluster) CleanUpLace(ctx context.Context, n *lab.Node) error {
	_, err := c.StartProgram(ctx, n.Host, roleCleanup, cleanupSpec{StateDir: n.StateDir()})
	return err
}

// cleanupSpec is whose traces to remove.
type cleanupSpec struct{ StateDir string }

// runCleanup removes them, and says in its log which there were.
func runCleanup(text []byte) error {
	var s cleanupSpec
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	removed, err := agent.Cleanup(agent.Config{StateDir: s.StateDir, BPFFS: lab.BPFDir(s.StateDir)})
	for _, what := range removed {
		fmt.Println("removed", what)
	}
	return err
}
