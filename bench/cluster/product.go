package cluster

import (
	"context"
	"syscall"

	rbacv1 "k8s.io/api/rbac/v1"

	"lace-cni.io/lace/bench/lab"
)

// Roles of the product's own commands, as make build leaves them: what is measured of them is
// what runs on nodes, and not a part of a test.
const (
	RoleLaceAgent    = "lace-agent"
	RoleLaceFastpath = "lace-fastpath"
	RoleKubeProxy    = roleKubeProxy
)

// StartLaceFastpath starts the command lace-fastpath on a node.
func (c *Cluster) StartLaceFastpath(ctx context.Context, n *lab.Node, binary string) error {
	_, err := c.StartProgram(ctx, n.Host, RoleLaceFastpath, componentSpec{binary, []string{
		"--state-dir", n.StateDir(), "--bpffs", lab.BPFDir(n.StateDir()),
	}})
	return err
}

// StartLaceAgent starts the command lace-agent on a node, reading from the API server as
// AgentUser.
func (c *Cluster) StartLaceAgent(ctx context.Context, n *lab.Node, binary string) error {
	if _, err := c.keys.client(AgentUser); err != nil {
		return err
	}
	config, err := c.keys.kubeconfig(AgentUser, c.server)
	if err != nil {
		return err
	}
	_, err = c.StartProgram(ctx, n.Host, RoleLaceAgent, componentSpec{binary, []string{
		"--state-dir", n.StateDir(), "--bpffs", lab.BPFDir(n.StateDir()), "--node-name", n.Name, "--kubeconfig", config,
	}})
	return err
}

// StopRole asks a program of a node to end, and returns when it has.
func (c *Cluster) StopRole(ctx context.Context, n *lab.Node, role string) error {
	return c.SignalProgram(ctx, n.Host, role, syscall.SIGTERM)
}

// AdmitAgents gives AgentUser every right: for measurements, which are not about rights.
func (c *Cluster) AdmitAgents(ctx context.Context) error {
	b := &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}
	b.Name = "agents"
	b.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: AgentUser}}
	return c.API.Create(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", b, nil)
}

// Run runs a command in the network namespace of a host, and returns what it says.
func (c *Cluster) Run(ctx context.Context, h *lab.Host, name string, args ...string) (string, error) {
	return runIn(ctx, h.PID(), name, args...)
}

// StartKubeProxyWith starts a node's kube-proxy with flags beside those that all have.
func (c *Cluster) StartKubeProxyWith(ctx context.Context, n *lab.Node, flags ...string) error {
	return c.startKubeProxy(ctx, n, c.server, flags...)
}
