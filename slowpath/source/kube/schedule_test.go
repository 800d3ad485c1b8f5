package kube

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/source/kube/kubetest"
)

var (
	schedules = flag.Int("schedules", 2000, "how many random schedules of faults are run")
	firstSeed = flag.Uint64("seed", 1, "seed of the first of them")
)

// client-go sleeps after errors by a clock that has begun outside of any bubble.
func init() { utilruntime.ErrorHandlers = nil }

// cluster is a store with two API servers, and a source that reads them.
type cluster struct {
	t       *testing.T
	rand    *rand.Rand
	store   *kubetest.Store
	fabric  *kubetest.Fabric
	servers []*kubetest.Server
	hosts   []*kubetest.Host
	sink    *published
	end     []func()
}

// boot starts everything in a bubble of its own time.
func boot(t *testing.T, seed uint64) *cluster {
	c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 0)), store: kubetest.NewStore()}
	names := []string{"a:6443", "b:6443", "c:6443"}[:2+c.rand.IntN(2)]
	c.fabric = kubetest.NewFabric(dialTimeout, names...)
	var urls []*url.URL
	for i, name := range names {
		a := kubetest.NewServer(c.store, seed, uint64(i)+1)
		h := c.fabric.Host(name)
		c.servers, c.hosts = append(c.servers, a), append(c.hosts, h)
		urls = append(urls, &url.URL{Scheme: "http", Host: name})
		c.serve(a, h)
	}
	plantSteady(c.store)
	for range 12 {
		c.mutate()
	}
	c.sink = newPublished(newMirror(t, c.store), snapshotPath(t))
	k := c.source(urls)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = k.Run(ctx, c.sink) }()
	c.end = append([]func(){func() { cancel(); <-done }, c.sink.stop}, c.end...)
	return c
}

func (c *cluster) serve(a *kubetest.Server, h *kubetest.Host) {
	var both http.Protocols
	both.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: a, Protocols: &both}
	l := h.Listen()
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	c.end = append(c.end, func() { h.Set(kubetest.Refusing); s.Close(); <-done })
}

func (c *cluster) source(urls []*url.URL) *Kube {
	client := &client{transport: newTransport(c.fabric.Dial)}
	client.transport.Protocols = new(http.Protocols)
	client.transport.Protocols.SetUnencryptedHTTP2(true)
	if err := client.open(&rest.Config{Host: urls[0].String()}, urls); err != nil {
		c.t.Fatal(err)
	}
	return assemble(Config{Node: "n1", Log: slog.New(slog.DiscardHandler)}, client, urls)
}

func (c *cluster) stop() {
	for _, f := range c.end {
		f()
	}
	synctest.Wait()
}

// mutate changes one object at random: creation, change, label on and off, deletion,
// re-creation.
func (c *cluster) mutate() {
	i := c.rand.IntN(6)
	labels := map[string]string{"app": "x", "kubernetes.io/service-name": fmt.Sprintf("s%d", i)}
	switch c.rand.IntN(6) {
	case 0:
		labels[resolve.LabelProxyName] = "other"
	case 1:
		labels[corev1.IsHeadlessService] = ""
	}
	var o metav1.Object
	resource := ""
	switch k := c.rand.IntN(10); {
	case k < 4:
		s := &corev1.Service{}
		s.CreationTimestamp = metav1.Unix(int64(1000+i), 0) // whose an address is must not depend on what was before
		s.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", 1+c.rand.IntN(20))
		s.Spec.Ports = []corev1.ServicePort{{Port: 80, NodePort: int32(c.rand.IntN(2) * (30000 + i))}}
		s.Spec.Type = []corev1.ServiceType{"ClusterIP", "NodePort", "LoadBalancer"}[c.rand.IntN(3)]
		if s.Spec.Type != "ClusterIP" {
			s.Spec.ExternalTrafficPolicy = []corev1.ServiceExternalTrafficPolicy{"Cluster", "Local"}[c.rand.IntN(2)]
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("203.0.113.%d", 1+i)}}
		}
		if c.rand.IntN(6) == 0 {
			s.Spec.ClusterIP = "None"
		}
		resource, o = "services", s
	case k < 8:
		s := &discoveryv1.EndpointSlice{AddressType: "IPv4"}
		s.Ports = []discoveryv1.EndpointPort{{Port: new(int32(8080))}}
		for range c.rand.IntN(4) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.244.1.%d", 1+c.rand.IntN(200))}, NodeName: new(fmt.Sprint("n", 1+c.rand.IntN(2))),
				Conditions: discoveryv1.EndpointConditions{Ready: new(c.rand.IntN(3) > 0), Serving: new(c.rand.IntN(4) > 0), Terminating: new(c.rand.IntN(2) > 0)},
			})
		}
		resource, o = "endpointslices", s
	case k == 8:
		n := &corev1.Node{}
		n.Spec.Unschedulable = c.rand.IntN(2) == 0
		resource, o = "nodes", n
		labels = map[string]string{corev1.LabelTopologyZone: fmt.Sprint("z", c.rand.IntN(3))}
	default:
		r := &networkingv1.ServiceCIDR{}
		r.Spec.CIDRs = []string{fmt.Sprintf("10.%d.0.0/16", 90+i)}
		resource, o = "servicecidrs", r
	}
	o.SetName(fmt.Sprintf("s%d", i))
	if resource == "nodes" {
		o.SetName(fmt.Sprintf("n%d", 1+i%3))
	} else if resource != "servicecidrs" {
		o.SetNamespace("demo")
	}
	o.SetLabels(labels)
	o.SetAnnotations(map[string]string{"note": "not read"})
	key := kubetest.Key(resource, o)
	if c.rand.IntN(4) == 0 {
		o = nil
	}
	c.store.Write(key, o)
}

// step does something to the cluster, the servers or the network, and lets time pass.
func (c *cluster) step() {
	i := c.rand.IntN(len(c.servers))
	switch c.rand.IntN(16) {
	case 0:
		c.hosts[i].Cut()
	case 1:
		c.hosts[i].Set(kubetest.Refusing)
	case 2:
		c.hosts[i].Set(kubetest.Holding)
	case 3:
		c.hosts[i].Set(kubetest.Open)
	case 4:
		c.store.Compact()
	case 5, 6:
		for j, a := range c.servers {
			if j == i || c.rand.IntN(2) == 0 {
				a.Set(c.mood())
			}
		}
	case 7: // a long outage, with changes in it
		for _, h := range c.hosts {
			h.Set(kubetest.Way(1 + c.rand.IntN(2)))
		}
		for most := 30; ; most = 3600 { // up to half a minute, rarely up to an hour
			time.Sleep(time.Duration(c.rand.IntN(most)) * time.Second)
			if c.rand.IntN(40) > 0 {
				break
			}
		}
	default:
		for range 1 + c.rand.IntN(12) {
			c.mutate()
			time.Sleep(time.Duration(c.rand.IntN(2)*c.rand.IntN(50)) * time.Millisecond)
		}
	}
	time.Sleep(time.Duration(c.rand.IntN(4000)) * time.Millisecond * time.Duration(c.rand.IntN(3)))
}

// mood throws dice for how a server misbehaves.
func (c *cluster) mood() kubetest.Mood {
	return kubetest.Mood{
		Failing: c.rand.IntN(8) == 0, Plain: c.rand.IntN(3) == 0, Replaying: c.rand.IntN(2) == 0,
		Lag: c.rand.IntN(2) * c.rand.IntN(4), Ending: c.rand.IntN(4) == 0,
		Slow: time.Duration(c.rand.IntN(3)/2*c.rand.IntN(800)) * time.Millisecond, Silent: c.rand.IntN(16) == 0,
	}
}

// heal makes one server good again, and the others anything.
func (c *cluster) heal() {
	good := c.rand.IntN(len(c.servers))
	for i, h := range c.hosts {
		switch {
		case i == good:
			h.Set(kubetest.Open)
			c.servers[i].Set(kubetest.Mood{Plain: c.rand.IntN(2) == 0})
		case c.rand.IntN(2) == 0:
			h.Set(kubetest.Open)
			c.servers[i].Set(kubetest.Mood{})
		default:
			h.Set(kubetest.Way(1 + c.rand.IntN(2)))
		}
	}
}

// TestAnyScheduleEndsEqualToTheAPI: whatever happens to connections, servers and objects,
// nothing is published before everything was read, nothing goes back in time or is taken
// away without having gone, what never changes is in everything that is published, and
// within 5 s after a server is good again the snapshot is what the API's objects compile to.
// Time is that of a bubble: an hour of outage costs nothing.
func TestAnyScheduleEndsEqualToTheAPI(t *testing.T) {
	n := uint64(*schedules)
	if testing.Short() {
		n = min(n, 100)
	}
	const parts = 4
	for part := range uint64(parts) {
		t.Run(fmt.Sprint("part ", 1+part), func(t *testing.T) {
			t.Parallel()
			for i := part; i < n && !t.Failed(); i += parts {
				runSchedule(t, *firstSeed+i)
			}
		})
	}
}

// TestSchedulesThatOnceFailed repeats the seeds in testdata/schedules, each with what was
// wrong.
func TestSchedulesThatOnceFailed(t *testing.T) {
	b, err := os.ReadFile("testdata/schedules")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		number, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil || what == "" {
			t.Fatalf("%q is not a seed and what was wrong", line)
		}
		t.Run(what, func(t *testing.T) { runSchedule(t, seed) })
	}
}

func runSchedule(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		c := boot(t, seed)
		defer c.stop()
		defer func() {
			if t.Failed() {
				t.Logf("seed %d; repeat with -run TestAnySchedule -seed %d -schedules 1, and keep it in testdata/schedules", seed, seed)
			}
		}()
		for range 4 + c.rand.IntN(12) {
			c.step()
		}
		c.heal()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		c.judge()
	})
}

// judge holds what was delivered and published to the API, 5 s after a server was good.
func (c *cluster) judge() {
	c.t.Helper()
	if !c.sink.isSynced() {
		c.t.Errorf("not synced 5 s after a server was good")
		return
	}
	if d := c.sink.diff(); d != "" {
		c.t.Errorf("5 s after a server was good (-API +delivered):\n%s", d)
	}
	c.sink.quiet()
	if d := c.sink.differs(); d != "" {
		c.t.Errorf("5 s after a server was good (-compiled from the API +published):\n%s", d)
	}
	for _, a := range c.servers {
		if n := a.Writes(); n > 0 {
			c.t.Errorf("%d requests that are not reads", n)
		}
	}
}
