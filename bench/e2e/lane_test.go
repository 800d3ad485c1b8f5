package e2e

import (
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// The lane carries what is established, all of it, and lets go of it when it must.
func TestLane(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: "on"})
	for _, b := range []struct {
		name string
		test func(*testing.T, *cluster)
	}{
		{"established connections of every origin run in it", runsInLane},
		{"connections of 8 MB come over whole", largeInLane},
		{"datagrams to an endpoint that was withdrawn go to another at once", withdrawnUnderTraffic},
		{"an endpoint that comes and goes does not concern connections to others", othersStay},
		{"an endpoint that leaves one of two Services stays with the other", leavesOneService},
		{"a Service that is deleted ends its connections", deletedInLane},
	} {
		t.Run(b.name, func(t *testing.T) { b.test(t, c) })
	}
}

// lane asks a node's agent.
func (c *cluster) lane(t *testing.T, node string) api.Lane {
	t.Helper()
	admin := c.Node(node).Admin()
	defer admin.Close()
	l, err := admin.Lane(t.Context())
	c.must(t, err)
	return l
}

// punts by cause since an earlier look, and how many in all.
func punts(before, after api.Lane) (by map[string]uint64, all uint64) {
	by = map[string]uint64{}
	for i, p := range after.Punts {
		if n := p.Packets - before.Punts[i].Packets; n > 0 {
			by[p.Cause] = n
			all += n
		}
	}
	return by, all
}

// inLane wants that, while something is done, the node's lane settles packets and leaves
// none to Go.
func (c *cluster) inLane(t *testing.T, node string, do func()) {
	t.Helper()
	before := c.lane(t, node)
	do()
	after := c.lane(t, node)
	if by, all := punts(before, after); all > 0 {
		t.Errorf("the lane of %s left %d packets to Go: %v", node, all, by)
	}
	if after.Hits.Packets == before.Hits.Packets {
		t.Errorf("the lane of %s settled nothing", node)
	}
}

// stream opens flows of one kind from a host.
func (c *cluster) stream(t *testing.T, from string, w way, service string, count int) *lab.Stream {
	t.Helper()
	r := w.to(service)
	r.Timeout = silence
	s, err := c.host(t, from).StartStream(t.Context(), traffic.Stream{Request: r, Count: count, Every: time.Millisecond})
	if err != nil {
		t.Fatalf("%s to %s over %s: %v", from, service, w, err)
	}
	return s
}

// finish ends streams, none of whose flows may have broken.
func (c *cluster) finish(t *testing.T, streams []*lab.Stream) {
	t.Helper()
	for i, s := range streams {
		p, err := s.Stop(t.Context())
		c.must(t, err)
		if p.Broken > 0 {
			t.Errorf("stream %d: %d of %d flows broke: %s", i, p.Broken, p.Flows, p.First)
		}
	}
}

// quiet waits until the node's lane leaves nothing to Go any more: what earlier tests have
// begun or ended is over.
func (c *cluster) quiet(t *testing.T, node string) {
	t.Helper()
	last, since := c.lane(t, node), time.Now()
	eventually(t, "silence", func() bool {
		now := c.lane(t, node)
		if _, all := punts(last, now); all > 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > 50*time.Millisecond
	})
}

func runsInLane(t *testing.T, c *cluster) {
	for _, service := range []string{"web", "node1", "node2", "solo"} {
		var streams []*lab.Stream
		for _, from := range []string{"shopper", "web-1", "n1", lab.OutsideName} {
			for _, w := range ways {
				streams = append(streams, c.stream(t, from, w, service, 1))
			}
		}
		goOn(t, streams)
		c.quiet(t, "n1")
		c.inLane(t, "n1", func() { goOn(t, streams) })
		for client, mode := range c.modes(t, "n1") {
			if mode.state == "established" && mode.mode != "lane" {
				t.Errorf("%s: %s is established and moved by %s", service, client, mode.mode)
			}
		}
		c.finish(t, streams)
	}
}

type mode struct{ state, mode string }

// modes says who moves each flow of a node.
func (c *cluster) modes(t *testing.T, node string) map[string]mode {
	t.Helper()
	admin := c.Node(node).Admin()
	defer admin.Close()
	list, err := admin.Flows(t.Context(), api.MaxFlows)
	c.must(t, err)
	out := map[string]mode{}
	for _, f := range list.Items {
		out[f.Protocol+" "+f.Client+" "+f.Frontend] = mode{f.State, f.Mode}
	}
	return out
}

// largeInLane sends packets of many segments, both ways at once.
func largeInLane(t *testing.T, c *cluster) {
	for _, from := range origins {
		for _, w := range ways[:2] {
			r := w.to("web")
			r.Bytes, r.Timeout = 8<<20, silence
			if a := c.dial(t, from, r); a.Outcome != traffic.OK {
				t.Errorf("%s over %s: %s", from, w, a)
			}
		}
	}
}

// withdrawnUnderTraffic sends one datagram after the other from one port, which makes them
// one flow. No answer that was asked for after the change is in use may come from the
// endpoint that was withdrawn.
func withdrawnUnderTraffic(t *testing.T, c *cluster) {
	defer c.set(t, "web", c.endpoints(t, manifests.Ready, lab.WebPods...))
	for i, from := range []string{"shopper", "n1", lab.OutsideName} {
		for _, family := range []int{4, 6} {
			w := way{"udp", family}
			c.set(t, "web", c.endpoints(t, manifests.Ready, "web-1"))
			r := w.to("web")
			r.From = netip.AddrPortFrom(netip.Addr{}, uint16(24000+10*i+family))
			attempts, err := c.host(t, from).StartAttempts(t.Context(), traffic.Burst{Request: r, Parallel: 1, Every: time.Millisecond})
			c.must(t, err)
			hits := c.lane(t, "n1").Hits.Packets
			eventually(t, "hits", func() bool { return c.lane(t, "n1").Hits.Packets > hits+20 })
			c.set(t, "web", c.endpoints(t, manifests.Ready, "web-2"))
			inUse := time.Now()
			hits = c.lane(t, "n1").Hits.Packets
			eventually(t, "hits with the other endpoint", func() bool { return c.lane(t, "n1").Hits.Packets > hits+20 })
			answers, err := attempts.Stop(t.Context())
			c.must(t, err)
			served := map[string]int{}
			for _, a := range answers {
				served[a.Server]++
				if a.Outcome != traffic.OK {
					t.Errorf("%s over %s: %s", from, w, a)
				} else if a.Server != "web-2" && a.Start.After(inUse) {
					t.Errorf("%s over %s: answered by %s, %s after the change was in use", from, w, a.Server, a.Start.Sub(inUse))
				}
			}
			if served["web-1"] == 0 || served["web-2"] == 0 {
				t.Errorf("%s over %s: answered by %v, want web-1 before and web-2 after", from, w, served)
			}
		}
	}
}

// othersStay changes an endpoint to which no connection of the streams leads, again and
// again.
func othersStay(t *testing.T, c *cluster) {
	defer c.set(t, "web", c.endpoints(t, manifests.Ready, lab.WebPods...))
	stay := c.endpoints(t, manifests.Ready, "web-2", "web-3")
	c.set(t, "web", stay)
	var streams []*lab.Stream
	for _, from := range []string{"shopper", "n1", lab.OutsideName} {
		for _, w := range ways {
			streams = append(streams, c.stream(t, from, w, "web", 5))
		}
	}
	goOn(t, streams)
	c.quiet(t, "n1")
	c.inLane(t, "n1", func() {
		for range 3 {
			for _, state := range []manifests.State{manifests.Ready, manifests.Draining, manifests.Gone} {
				c.set(t, "web", append(c.endpoints(t, state, "web-1"), stay...))
			}
			c.set(t, "web", stay)
		}
		goOn(t, streams)
	})
	c.finish(t, streams)
}

// leavesOneService lets web-1, which solo, twin and web have, leave twin. Connections to
// it, whatever Service they came by, are looked at once in each direction; those of other
// endpoints are not, and those of twin go on if they are TCP.
func leavesOneService(t *testing.T, c *cluster) {
	defer c.set(t, "twin", c.endpoints(t, manifests.Ready, "web-1"))
	var streams []*lab.Stream
	flows := 0
	for _, w := range ways {
		streams = append(streams, c.stream(t, "shopper", w, "solo", 3))
		flows += 3
	}
	for _, w := range ways[:2] {
		streams = append(streams, c.stream(t, "shopper", w, "twin", 3))
		flows += 3
	}
	goOn(t, streams)
	c.quiet(t, "n1")
	before := c.lane(t, "n1")
	c.set(t, "twin", c.endpoints(t, manifests.Ready, "web-2"))
	goOn(t, streams)
	by, all := punts(before, c.lane(t, "n1"))
	// ICMP errors are complaints of streams that ended before.
	if by["generation"] != uint64(2*flows) || all != by["generation"]+by["icmp"] {
		t.Errorf("%d flows to the endpoint, and punts %v, want one for each direction and no others", flows, by)
	}
	c.inLane(t, "n1", func() { goOn(t, streams) })
	c.finish(t, streams)
}

// deletedInLane takes a Service away under connections and datagrams in the lane: no
// packet of theirs is carried any more.
func deletedInLane(t *testing.T, c *cluster) {
	const name = "brief"
	c.brief(t, name)
	var streams []*lab.Stream
	for _, from := range []string{"shopper", "n1"} {
		for _, w := range ways {
			r := w.to(name)
			r.Timeout = time.Second
			s, err := c.host(t, from).StartStream(t.Context(), traffic.Stream{Request: r, Every: time.Millisecond})
			c.must(t, err)
			streams = append(streams, s)
		}
	}
	goOn(t, streams)
	c.inLane(t, "n1", func() { goOn(t, streams) })
	c.retract(t, name, name+"-endpoints")
	c.awaitGone(t.Context(), t, name)
	hits := c.lane(t, "n1").Hits.Packets
	for i, s := range streams {
		eventually(t, "an end of the flow", func() bool {
			p, err := s.Progress(t.Context())
			return err != nil || p.Broken > 0
		})
		if p, err := s.Stop(t.Context()); err != nil || p.Broken != 1 {
			t.Errorf("stream %d goes on without its Service: %+v, %v", i, p, err)
		}
	}
	if now := c.lane(t, "n1").Hits.Packets; now != hits {
		t.Errorf("%d packets were carried for a Service that is not there any more", now-hits)
	}
}
