package e2e

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// backendGoes withdraws backends one by one. TCP stays where it is until it ends; UDP goes
// on with another backend; new connections avoid what is withdrawn.
func backendGoes(t *testing.T, c *cluster) {
	defer c.set(t, "web", c.endpoints(t, manifests.Ready, lab.WebPods...))
	for _, family := range []int{4, 6} {
		c.set(t, "web", c.endpoints(t, manifests.Ready, lab.WebPods...))
		tcp, udp := way{"tcp", family}, way{"udp", family}
		stream, err := c.Pod("shopper").StartStream(t.Context(), traffic.Stream{Request: tcp.to("web"), Count: 12, Every: time.Millisecond})
		c.must(t, err)
		datagram := udp.to("web")
		datagram.From = netip.AddrPortFrom(netip.Addr{}, uint16(21000+family))
		c.set(t, "web", c.endpoints(t, manifests.Ready, "web-1"))
		if a := c.dial(t, "shopper", datagram); a.Server != "web-1" {
			t.Errorf("IPv%d, UDP with one backend: %s", family, a)
		}
		c.set(t, "web", c.endpoints(t, manifests.Ready, "web-3"))
		if a := c.dial(t, "shopper", datagram); a.Server != "web-3" {
			t.Errorf("IPv%d, UDP of the same socket after its backend went: %s", family, a)
		}
		tally, err := c.Pod("shopper").Burst(t.Context(), traffic.Burst{Request: tcp.to("web"), Count: 20})
		c.must(t, err)
		if tally.Servers["web-3"] != 20 {
			t.Errorf("IPv%d: new connections went to %v (%s), want web-3 alone", family, tally.Servers, tally.First)
		}
		before, err := stream.Progress(t.Context())
		c.must(t, err)
		eventually(t, "turns of the old connections", func() bool {
			p, err := stream.Progress(t.Context())
			return err != nil || p.Broken > 0 || p.Turns > before.Turns+10*p.Flows
		})
		p, err := stream.Stop(t.Context())
		c.must(t, err)
		if p.Broken > 0 {
			t.Errorf("IPv%d: %d of %d connections broke when their backend was withdrawn: %s", family, p.Broken, p.Flows, p.First)
		}
	}
}

// latePacket sends a segment of a connection that both ends have closed, and one of a
// connection that never was: neither may start a flow.
func latePacket(t *testing.T, c *cluster) {
	for _, family := range []int{4, 6} {
		r := way{"tcp", family}.to("web")
		r.From = netip.AddrPortFrom(netip.Addr{}, uint16(23000+family))
		a := c.dial(t, "shopper", r)
		if a.Outcome != traffic.OK {
			t.Fatalf("IPv%d: %s", family, a)
		}
		registered := c.flows(t)
		for _, port := range []uint16{a.Local.Port(), 23999} {
			src := netip.AddrPortFrom(c.Pod("shopper").Addr(family), port)
			late := frame.TCP(src.String(), r.To.String(), packet.FlagACK, "late")
			before, sent := c.decided(t), time.Time{}
			eventually(t, "the segment being decided", func() bool {
				// A machine that does much else may lose one before it comes to the node.
				if time.Since(sent) > time.Second {
					c.must(t, c.Pod("shopper").SendIP(t.Context(), late.Bytes()[ethernet:]))
					sent = time.Now()
				}
				return c.decided(t) > before
			})
		}
		for client, backend := range c.flows(t) {
			was, known := registered[client]
			if !known {
				t.Errorf("IPv%d: the late segment of %s started a flow to %s", family, client, backend)
			} else if was != backend {
				t.Errorf("IPv%d: the late segment of %s moved its flow from %s to %s", family, client, was, backend)
			}
		}
	}
}

// flows of n1: client and protocol → backend.
func (c *cluster) flows(t *testing.T) map[string]string {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	list, err := admin.Flows(t.Context(), 100_000)
	c.must(t, err)
	out := map[string]string{}
	for _, f := range list.Items {
		out[f.Protocol+" "+f.Client+" "+f.Frontend] = f.Backend
	}
	return out
}

// decided is how many packets n1's fast path has decided, and the kernel repeated.
func (c *cluster) decided(t *testing.T) uint64 {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	s, err := admin.Status(t.Context())
	c.must(t, err)
	lane, err := admin.Lane(t.Context())
	c.must(t, err)
	return s.Fastpath.Packets + lane.Hits.Packets
}

// editTakesEffect saves endpoints and times until new connections go by them: a client
// dials all the while, and the usual one of five changes must be seen in time.
func editTakesEffect(t *testing.T, c *cluster) {
	defer c.set(t, "web", c.endpoints(t, manifests.Ready, lab.WebPods...))
	r := way{"tcp", 6}.to("web")
	var took []time.Duration
	for _, only := range []string{"web-1", "web-3", "web-2", "web-1", "web-3"} {
		saved := time.Now()
		c.save(t, "web", c.endpoints(t, manifests.Ready, only))
		same := 0 // answers in a row by the one that is left
		eventually(t, "answers by "+only+" alone", func() bool {
			if a := c.dial(t, "shopper", r); a.Server == only {
				same++
			} else {
				same = 0
			}
			return same == 12
		})
		took = append(took, time.Since(saved))
	}
	slices.Sort(took)
	if took[2] > time.Second {
		t.Errorf("changes took effect after %v", took)
	}
}

// brokenFile spoils a file that was good: its objects stay as they were, and the node
// says what is wrong.
func brokenFile(t *testing.T, c *cluster) {
	path := filepath.Join(c.Manifests(), "web-endpoints.yaml")
	good, err := os.ReadFile(path)
	c.must(t, err)
	c.must(t, manifests.Save(c.Manifests(), "web-endpoints.yaml", append(good[:len(good)/2:len(good)/2], "\n\t{{{"...)))
	eventually(t, "a Problem", func() bool { return c.problems(t) > 0 })
	tally, err := c.Pod("shopper").Burst(t.Context(), traffic.Burst{Request: way{"tcp", 4}.to("web"), Count: attempts})
	c.must(t, err)
	if tally.Failed() > 0 || len(tally.Servers) != 3 {
		t.Errorf("with a broken file: %d failed (%s), answered by %v", tally.Failed(), tally.First, tally.Servers)
	}
	c.must(t, manifests.Save(c.Manifests(), "web-endpoints.yaml", good))
	eventually(t, "an end of the Problem", func() bool { return c.problems(t) == 0 })
}

func (c *cluster) problems(t *testing.T) int {
	t.Helper()
	admin := c.Node("n1").Admin()
	defer admin.Close()
	list, err := admin.Problems(t.Context())
	c.must(t, err)
	return len(list.Items)
}

// deletedService takes a Service away under a connection: the connection ends, and the
// address is nobody's.
func deletedService(t *testing.T, c *cluster) {
	const name = "brief"
	c.brief(t, name)
	for _, w := range ways {
		if a := c.dial(t, "shopper", w.to(name)); a.Outcome != traffic.OK {
			t.Errorf("before it is deleted, over %s: %s", w, a)
		}
	}
	r := way{"tcp", 4}.to(name)
	r.Timeout = time.Second
	stream, err := c.Pod("shopper").StartStream(t.Context(), traffic.Stream{Request: r, Every: time.Millisecond})
	c.must(t, err)
	c.retract(t, name, name+"-endpoints")
	ctx, cancel := context.WithTimeout(t.Context(), settleTime)
	defer cancel()
	c.awaitGone(ctx, t, name)
	eventually(t, "an end of the connection", func() bool {
		p, err := stream.Progress(t.Context())
		return err != nil || p.Broken > 0
	})
	stream.Stop(t.Context())
	dropped(t, c, "shopper", "n1", "unallocated-vip", name)
}

// brief declares a Service with one endpoint.
func (c *cluster) brief(t *testing.T, name string) {
	t.Helper()
	vips[name] = map[int]string{4: "10.96.0.70", 6: "fd00:10:96::70"}
	yaml := `{apiVersion: v1, kind: Service, metadata: {name: ` + name + `, namespace: default}, spec: {
clusterIP: 10.96.0.70, clusterIPs: [10.96.0.70, "fd00:10:96::70"], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack,
ports: [{name: http, protocol: TCP, port: 80}, {name: echo, protocol: UDP, port: 80}]}}`
	c.declare(t, name, []byte(yaml))
	c.set(t, name, c.endpoints(t, manifests.Ready, "web-1"))
}

// awaitGone waits until no node has a Service any more.
func (c *cluster) awaitGone(ctx context.Context, t *testing.T, service string) {
	t.Helper()
	for _, n := range c.Nodes() {
		admin := n.Admin()
		defer admin.Close()
		eventually(t, n.Name+" without "+service, func() bool {
			list, err := admin.Services(ctx)
			for _, s := range list.Items {
				if s.Name == service {
					return false
				}
			}
			return err == nil
		})
		c.must(t, n.AwaitReady(ctx))
	}
}
