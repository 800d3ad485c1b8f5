package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/counter"
)

//go:embed testdata/services.yaml
var services []byte

// settleTime bounds every wait for a change to be in use.
const settleTime = time.Minute

// cluster is a lab in which both processes run on both nodes.
type cluster struct {
	*lab.Lab
	objects objects // where tests declare what the nodes go by
	backlog uint64  // see backlogDropped, when the cluster began
}

// newCluster starts one, with the tests' Services, and waits until all is programmed. On
// failure the logs of its processes are shown.
func newCluster(t *testing.T, topology lab.Topology) *cluster {
	t.Helper()
	c := emptyCluster(t, topology)
	c.populate(t)
	return c
}

// emptyCluster is one in which nothing of Lace's runs yet.
func emptyCluster(t *testing.T, topology lab.Topology) *cluster {
	t.Helper()
	testenv.Privileged(t)
	mayRun(t)
	l, objects, err := startLab(t.Context(), topology)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{l, objects, backlogDropped()}
	t.Cleanup(func() {
		if t.Failed() {
			c.show(t)
		}
		if way, ends := objects.(io.Closer); ends {
			if err := way.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// listeners are the hosts that serve: pods behind Services, and both nodes.
var listeners = []string{"web-1", "web-2", "web-3", "n1", "n2"}

func (c *cluster) populate(t *testing.T) {
	t.Helper()
	for _, name := range listeners {
		c.must(t, c.host(t, name).Listen(t.Context(), lab.WebTarget))
	}
	c.declare(t, "services", services)
	backends := map[string][]string{"empty": nil, "local": {"web-3"}, "node1": {"n1"}, "node2": {"n2"}, "solo": {"web-1"}, "twin": {"web-1"}}
	for service, names := range backends {
		c.save(t, service, c.endpoints(t, manifests.Ready, names...))
	}
	for _, n := range c.Nodes() {
		c.must(t, n.StartFastpath(t.Context()))
		c.must(t, n.StartAgent(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), settleTime)
	defer cancel()
	c.must(t, c.AwaitReady(ctx))
	for service, names := range backends {
		c.must(t, c.AwaitService(ctx, service, c.endpoints(t, manifests.Ready, names...)))
	}
}

func (c *cluster) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) host(t *testing.T, name string) *lab.Host {
	t.Helper()
	h, err := c.Host(name)
	c.must(t, err)
	return h
}

func (c *cluster) endpoints(t *testing.T, state manifests.State, names ...string) (out []manifests.Endpoint) {
	t.Helper()
	for _, name := range names {
		out = append(out, c.host(t, name).Endpoint(state))
	}
	return out
}

// save writes the endpoints of a Service.
func (c *cluster) save(t *testing.T, service string, endpoints []manifests.Endpoint) {
	t.Helper()
	b, err := manifests.Slices(service, lab.WebPorts, endpoints)
	c.must(t, err)
	c.declare(t, service+"-endpoints", b)
}

// set writes the endpoints of a Service and waits until all nodes go by them.
func (c *cluster) set(t *testing.T, service string, endpoints []manifests.Endpoint) {
	t.Helper()
	c.save(t, service, endpoints)
	ctx, cancel := context.WithTimeout(t.Context(), settleTime)
	defer cancel()
	c.must(t, c.AwaitService(ctx, service, endpoints))
}

// show writes the last lines of every log, for a test that has failed.
func (c *cluster) show(t *testing.T) {
	for _, n := range c.Nodes() {
		for _, role := range []string{"fastpath", "agent"} {
			b, _ := os.ReadFile(n.Log(role))
			lines := strings.Split(strings.TrimSpace(string(b)), "\n")
			t.Logf("%s of %s, last lines:\n%s", role, n.Name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
		for name, k := range c.drops(t, n.Name) {
			if k > 0 {
				t.Logf("%s dropped or refused: %s %d", n.Name, name, k)
			}
		}
		if r, err := counter.Open(c.stateFile(n.Name, "counters")); err == nil {
			t.Logf("%s lost %d packets on their way to Go", n.Name, lost(r.Totals()))
			r.Close()
		}
	}
	c.showKernel(t)
	t.Logf("the machine's kernel lost %d packets of all its namespaces meanwhile", backlogDropped()-c.backlog)
}

// vips of the Services, by name and family.
var vips = map[string]map[int]string{
	"web":   {4: "10.96.0.10", 6: "fd00:10:96::10"},
	"empty": {4: "10.96.0.20", 6: "fd00:10:96::20"},
	"local": {4: "10.96.0.30", 6: "fd00:10:96::30"},
	"node1": {4: "10.96.0.41", 6: "fd00:10:96::41"},
	"node2": {4: "10.96.0.42", 6: "fd00:10:96::42"},
	"solo":  {4: "10.96.0.50", 6: "fd00:10:96::50"},
	"twin":  {4: "10.96.0.51", 6: "fd00:10:96::51"},
	"none":  {4: "10.96.99.99", 6: "fd00:10:96::9999"}, // in the ranges, of no Service
}

func vip(service string, family int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(vips[service][family]), 80)
}

// way is one kind of connection to a Service.
type way struct {
	network string
	family  int
}

func (w way) String() string { return fmt.Sprintf("%s%d", w.network, w.family) }

// ways are all kinds.
var ways = []way{{"tcp", 4}, {"tcp", 6}, {"udp", 4}, {"udp", 6}}

// request to a Service.
func (w way) to(service string) traffic.Request {
	return traffic.Request{Network: w.network, To: vip(service, w.family), Bytes: 1000}
}

// origins are every place from which a client may call: pods on both nodes, a backend,
// both nodes, outside of the cluster.
var origins = []string{"shopper", "visitor", "web-1", "n1", "n2", lab.OutsideName}

// dial makes one attempt.
func (c *cluster) dial(t *testing.T, from string, r traffic.Request) traffic.Answer {
	t.Helper()
	a, err := c.host(t, from).Dial(t.Context(), r)
	c.must(t, err)
	return a
}

// drops reads what a node has dropped or refused, by reason, kernel and Go together.
func (c *cluster) drops(t *testing.T, node string) map[string]uint64 {
	t.Helper()
	admin := c.Node(node).Admin()
	defer admin.Close()
	list, err := admin.Drops(context.WithoutCancel(t.Context())) // also when the test is over
	if err != nil {
		t.Logf("drops of %s: %v", node, err)
	}
	out := map[string]uint64{}
	for _, d := range list.Items {
		out[d.Reason] += d.Packets
	}
	return out
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	within(t, settleTime, what, done)
}

func within(t *testing.T, patience time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %s", what, patience)
		}
	}
}

// stateFile is a file of a node's state directory.
func (c *cluster) stateFile(node, name string) string {
	return filepath.Clean(c.Node(node).StatePath(name))
}
