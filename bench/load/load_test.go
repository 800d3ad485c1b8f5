package load_test

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/bench/load"
)

const (
	port  = 9000
	flows = 64
)

// stage is a lab without any service proxy: a client pod, a server pod, a node between.
type stage struct {
	client, node, server *load.Space
	to                   netip.AddrPort
	flows                load.Flows // of the last generator
	from                 netip.Addr
	cpu                  int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	testenv.Privileged(t)
	l, err := lab.Start(t.Context(), lab.Topology{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	space := func(h *lab.Host) *load.Space {
		s, err := load.OpenSpace(h.Name, h.PID())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := &stage{
		client: space(l.Pod("shopper")), node: space(l.Node("n1").Host), server: space(l.Pod("web-1")),
		to: netip.AddrPortFrom(l.Pod("web-1").Addr4, port), from: l.Pod("shopper").Addr4,
		cpu: runtime.NumCPU() - 1,
	}
	must(t, s.node.SetOffload("shopper", load.GRO, true))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stage) generator(t *testing.T, first, count int) *load.Frames {
	t.Helper()
	g, err := load.OpenFrames(s.client, "eth0")
	must(t, err)
	t.Cleanup(func() { g.Close() })
	destination, err := s.node.MAC("shopper")
	must(t, err)
	source, err := s.client.MAC("eth0")
	must(t, err)
	s.flows = load.Flows{From: s.from, To: s.to, Destination: destination, Source: source, First: first, Count: count}
	must(t, g.Use(s.flows))
	return g
}

func (s *stage) sink(t *testing.T, at *load.Space, reply bool, m load.Mode) *load.Sink {
	t.Helper()
	k, err := load.OpenSink(at, "eth0", port, reply)
	must(t, err)
	t.Cleanup(func() { k.Close() })
	must(t, k.Set(m))
	return k
}

// TestFramesArriveAndAreCounted: every frame that is made is routed by the node and taken
// by the sink, and answers come back to the client.
func TestFramesArriveAndAreCounted(t *testing.T) {
	s := newStage(t)
	g := s.generator(t, 0, flows)
	there := s.sink(t, s.server, false, load.Answer)
	back := s.sink(t, s.client, true, load.Swallow)
	must(t, g.Warm(t.Context(), s.cpu, 1000)) // neighbours
	before, err := back.Taken()
	must(t, err)
	c, err := g.Run(t.Context(), load.Loop{CPU: s.cpu, Packets: 20000, Arrived: there.Taken})
	must(t, err)
	after, err := back.Taken()
	must(t, err)
	if c.Sent != 20000 || c.Arrived != c.Sent || after-before != c.Sent {
		t.Errorf("%d sent, %d arrived, %d came back; want 20000 of each", c.Sent, c.Arrived, after-before)
	}
	if c.PerPacket() < 10 || c.PerPacket() > 1e6 || c.Loss() != 0 {
		t.Errorf("%.0f ns per packet, loss %.3f", c.PerPacket(), c.Loss())
	}
}

// TestFramesHaveRightChecksums: a socket gets them, which the kernel gives nothing that is
// damaged.
func TestFramesHaveRightChecksums(t *testing.T) {
	s := newStage(t)
	server, err := load.Serve(s.server, s.to)
	must(t, err)
	defer server.Close()
	back := s.sink(t, s.client, true, load.Swallow)
	for _, first := range []int{0, 1 << 14} {
		g := s.generator(t, first, flows)
		must(t, g.Warm(t.Context(), s.cpu, 16)) // neighbours, and a receiver that may have slept
		before, err := back.Taken()
		must(t, err)
		c, err := g.Run(t.Context(), load.Loop{CPU: s.cpu, Packets: flows, Arrived: back.Taken})
		must(t, err)
		if c.Sent != flows {
			t.Errorf("flows from %d on: %d sent, want %d", first, c.Sent, flows)
		}
		await(t, back, before+1)
	}
}

func TestFlowsOutOfRangeAreRefused(t *testing.T) {
	four := netip.MustParseAddr("192.0.2.1")
	to := netip.AddrPortFrom(four, 80)
	for _, c := range []struct {
		sentence string
		flows    load.Flows
	}{
		{"no power of two", load.Flows{From: four, To: to, Count: 3}},
		{"none", load.Flows{From: four, To: to}},
		{"more than there are source addresses for", load.Flows{From: four, To: to, First: 1, Count: 1 << 21}},
		{"IPv6", load.Flows{From: netip.MustParseAddr("fd00::1"), To: to, Count: 1}},
	} {
		if err := new(load.Frames).Use(c.flows); err == nil {
			t.Errorf("%s: accepted", c.sentence)
		}
	}
}

// TestSockets: each kind of load from real sockets does its work between two pods.
func TestSockets(t *testing.T) {
	s := newStage(t)
	server, err := load.Serve(s.server, s.to)
	must(t, err)
	defer server.Close()

	d, err := load.OpenDatagrams(s.client, s.to, 8)
	must(t, err)
	defer d.Close()
	must(t, d.Establish(t.Context(), time.Second))
	there := s.sink(t, s.server, false, load.Swallow)
	c, err := d.Run(t.Context(), load.Loop{CPU: s.cpu, Packets: 3200, Arrived: there.Taken})
	must(t, err)
	if c.Sent != 3200 || c.Arrived != c.Sent {
		t.Errorf("datagrams: %d sent, %d arrived, want 3200", c.Sent, c.Arrived)
	}
	must(t, there.Set(load.Ignore))

	streamed, err := load.Stream(t.Context(), s.client, load.Discard(s.to), 2, 20*time.Millisecond, 100*time.Millisecond)
	must(t, err)
	if streamed.Bytes < 1<<20 {
		t.Errorf("two streams carried %d bytes in %s", streamed.Bytes, streamed.Took)
	}
	for name, run := range map[string]func() (load.Exchanged, error){
		"connections": func() (load.Exchanged, error) {
			return load.Connections(t.Context(), s.client, s.to, 2, 200*time.Millisecond)
		},
		"first packets": func() (load.Exchanged, error) {
			return load.FirstPackets(t.Context(), s.client, s.to, 200*time.Millisecond)
		},
		"round trips": func() (load.Exchanged, error) {
			return load.RoundTrips(t.Context(), s.client, s.to, 200*time.Millisecond)
		},
	} {
		e, err := run()
		if err != nil || e.Failed > 0 {
			t.Errorf("%s: %d answered, %d failed (%v), %v", name, len(e.Times), e.Failed, e.First, err)
		}
	}
}

// TestNobodyAnswers: an attempt without an answer is a failure that says why.
func TestNobodyAnswers(t *testing.T) {
	s := newStage(t)
	if e, err := load.Connections(t.Context(), s.client, s.to, 1, time.Millisecond); err == nil {
		t.Errorf("connections without a server: %+v", e)
	}
}

// TestCeiling: nothing in the way of the generator is faster than a node.
func TestCeiling(t *testing.T) {
	s := newStage(t)
	c, err := load.Ceiling(t.Context(), s.client, s.cpu, time.Millisecond)
	must(t, err)
	if c.Arrived == 0 || c.Loss() > 0.01 {
		t.Errorf("%d sent, %d arrived", c.Sent, c.Arrived)
	}
	t.Logf("%.0f ns per frame", c.PerPacket())
}
