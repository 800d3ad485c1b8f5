package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/control/model"
)

// Cluster is a lab with a control plane.
type Cluster struct {
	*lab.Lab
	API    *API // as an administrator
	binary string
	keys   *keys
	server string
	ends   []func() error // what else ends with the cluster
}

// apiPort is where the API server listens on the outside host.
const apiPort = "6443"

// Start builds a lab, starts a control plane in it and waits until that is ready. On
// failure nothing is left behind.
func Start(ctx context.Context, t lab.Topology) (*Cluster, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	l, err := lab.Start(ctx, t)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Lab: l, binary: binary}
	if err := c.boot(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return c, nil
}

// Close ends everything.
func (c *Cluster) Close() error {
	c.API.Close()
	var errs []error
	for _, end := range c.ends {
		errs = append(errs, end())
	}
	return errors.Join(append(errs, c.Lab.Close())...)
}

func (c *Cluster) boot(ctx context.Context) (err error) {
	host := c.Outside()
	c.server = "https://" + net.JoinHostPort(host.Addr4.String(), apiPort)
	c.keys, err = newKeys(filepath.Join(c.Folder(), "keys"), host.Addr4.AsSlice(), host.Addr6.AsSlice(), net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	admin, err := c.keys.client("admin", "system:masters")
	if err != nil {
		return err
	}
	if _, err := c.keys.client("controllers", "system:masters"); err != nil {
		return err
	}
	c.API = newAPI(c.server, admin, host.PID())
	for _, start := range []func(context.Context) error{c.StartEtcd, c.StartAPIServer, c.AwaitAPIServer, c.StartControllers} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) start(ctx context.Context, role string, args ...string) error {
	_, err := c.StartProgram(ctx, c.Outside(), role, componentSpec{c.binary, args})
	return err
}

// StartEtcd starts etcd. Its data do not outlive the lab, so that it need not wait for a
// disk.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	return c.start(ctx, roleEtcd,
		"--data-dir", filepath.Join(c.Folder(), "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379",
		"--listen-peer-urls", "http://127.0.0.1:2380")
}

// StartAPIServer starts the API server, with RBAC, and service ranges as in the lab.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	var ranges []string
	for _, p := range lab.ServiceRanges {
		ranges = append(ranges, p.String())
	}
	policy := filepath.Join(c.Folder(), "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	k := c.keys.path
	return c.start(ctx, roleAPIServer,
		"--etcd-servers", "http://127.0.0.1:2379", "--secure-port", apiPort, "--bind-address", "0.0.0.0",
		"--advertise-address", c.Outside().Addr4.String(), "--service-cluster-ip-range", strings.Join(ranges, ","),
		"--tls-cert-file", k("apiserver.crt"), "--tls-private-key-file", k("apiserver.key"), "--client-ca-file", k("ca.crt"),
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", k("accounts.key"), "--service-account-signing-key-file", k("accounts.key"),
		"--authorization-mode", "Node,RBAC", "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition",
		"--audit-policy-file", policy, "--audit-log-path", c.auditLog(),
		"--endpoint-reconciler-type", "none", "--profiling=false")
}

// StartControllers starts those controllers that Services depend on.
func (c *Cluster) StartControllers(ctx context.Context) error {
	config, err := c.keys.kubeconfig("controllers", "https://127.0.0.1:"+apiPort)
	if err != nil {
		return err
	}
	return c.start(ctx, roleControllers, "--kubeconfig", config, "--leader-elect=false", "--bind-address", "127.0.0.1",
		"--controllers", "endpointslice-controller,endpointslice-mirroring-controller,service-cidr-controller,namespace-controller",
		"--root-ca-file", c.keys.path("ca.crt"), "--profiling=false", "--concurrent-service-endpoint-syncs", "10")
}

// KillAPIServer kills it as a machine that fails would.
func (c *Cluster) KillAPIServer(ctx context.Context) error {
	return c.SignalProgram(ctx, c.Outside(), roleAPIServer, syscall.SIGKILL)
}

// AwaitAPIServer waits until the API server says that it is ready.
func (c *Cluster) AwaitAPIServer(ctx context.Context) error {
	for {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := c.API.Get(one, "/readyz", nil)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w: %w; see %s", ctx.Err(), err, c.Log(c.Outside(), roleAPIServer))
		}
	}
}

// AgentOptions are settings of an agent; zero values are those of lace-agent's flags, but
// for the delivery.
type AgentOptions struct {
	Delivery    model.Delivery // zero: model.Direct
	LaneOff     bool           // every packet goes through Go
	BesideProxy bool           // start although a kube-proxy is there
}

// StartAgent starts a node's agent, reading from the API server as the user of that
// name, and returns its process as the node sees it. The rights of the user are the
// caller's business.
func (c *Cluster) StartAgent(ctx context.Context, n *lab.Node, user string) (pid int, err error) {
	return c.StartAgentWith(ctx, n, user, AgentOptions{})
}

// StartAgentWith is StartAgent with other settings.
func (c *Cluster) StartAgentWith(ctx context.Context, n *lab.Node, user string, o AgentOptions) (pid int, err error) {
	source, err := c.sourceFor(user)
	if err != nil {
		return 0, err
	}
	return c.StartProgram(ctx, n.Host, roleAgent, agentSpec{Node: n.Name, StateDir: n.StateDir(), sourceSpec: source, AgentOptions: o})
}

// KillAgent kills a node's agent.
func (c *Cluster) KillAgent(ctx context.Context, n *lab.Node) error {
	return c.SignalProgram(ctx, n.Host, roleAgent, syscall.SIGKILL)
}
