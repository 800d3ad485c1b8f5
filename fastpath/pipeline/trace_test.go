package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// TestTrace: what `lace explain` shows.
func TestTrace(t *testing.T) {
	cases := []struct {
		sentence string
		given    func(*world)
		step     step
		steps    []Step
	}{
		{
			"a new connection is told from port to delivery", serving("vip", "web:8080"),
			step{sends: "client:4000 > vip:80", flags: syn},
			[]Step{
				{"port", "came in on port 2 (pod client), network 0"},
				{"parse", "TCP from 10.244.1.2:4000 to 10.96.0.10:80 SYN, 47 bytes"},
				{"flow", "none registered"},
				{"source", "the source address belongs to this port"},
				{"frontend", "10.96.0.10:80 TCP in network 0; usable backends for a client inside the cluster: 1"},
				{"choose", "backend 2, 10.244.1.3:8080, at random, one of 1"},
				{"flow", "both directions would be registered"},
				{"rewrite", "from 10.244.1.2:4000 to 10.244.1.3:8080"},
				{"forward", "out of port 3 (pod web)"},
				{"verdict", "forward, reason new-flow: First packet of a flow; a backend was chosen"},
			},
		},
		{
			"a refusal names the frontend and where the answer goes", empty("vip", table.Refuse, table.Drop),
			step{sends: "node:4000 > vip:80", flags: syn},
			[]Step{
				{"port", "came in on port 1 (host node), network 0"},
				{"parse", "TCP from 172.30.0.11:4000 to 10.96.0.10:80 SYN, 47 bytes"},
				{"flow", "none registered"},
				{"source", "the source address belongs to this port"},
				{"frontend", "10.96.0.10:80 TCP in network 0; usable backends for a client inside the cluster: 0"},
				{"answer", "a TCP reset in the name of the VIP, to the node itself, up its stack from lace0"},
				{"verdict", "answer, reason no-endpoints: The frontend has no usable endpoint anywhere; the client is refused"},
			},
		},
		{
			"a port that the VIP does not have is named", serving("vip", "web:8080"),
			step{sends: "client:4000 > vip:81", flags: syn},
			[]Step{
				{"port", "came in on port 2 (pod client), network 0"},
				{"parse", "TCP from 10.244.1.2:4000 to 10.96.0.10:81 SYN, 47 bytes"},
				{"flow", "none registered"},
				{"source", "the source address belongs to this port"},
				{"frontend", "the address is a VIP, but it has no such port"},
				{"answer", "a TCP reset in the name of the VIP, back out of port 2 (pod client)"},
				{"verdict", "answer, reason unknown-port: The VIP is known but has no such port; the client is refused"},
			},
		},
		{
			"a spoofed source is named", serving("vip", "web:8080"),
			step{sends: "outside:4000 > vip:80", flags: syn, at: "in client"},
			[]Step{
				{"port", "came in on port 2 (pod client), network 0"},
				{"parse", "TCP from 172.30.0.100:4000 to 10.96.0.10:80 SYN, 47 bytes"},
				{"flow", "none registered"},
				{"source", "the source address does not live behind this port"},
				{"verdict", "drop, reason spoofed-source: The source address does not belong to the port on which the packet came"},
			},
		},
		{
			"a packet of the node's stack that is let go", serving("vip", "web:8080"),
			step{sends: "node:8080 > client:4000", at: "out client", flags: ack},
			[]Step{
				{"port", "came from the node's stack, on its way out of port 2 (pod client), network 0"},
				{"parse", "TCP from 172.30.0.11:8080 to 10.244.1.2:4000 ACK, 47 bytes"},
				{"flow", "none registered"},
				{"forward", "goes on out of port 2 (pod client), as the node's stack wanted"},
				{"verdict", "pass, reason not-claimed: Not Lace's traffic; given back to the kernel"},
			},
		},
		{
			"a backend in the node's own stack", serving("vip", "node:8080"),
			step{sends: "client:4000 > vip:80", flags: syn},
			[]Step{
				{"port", "came in on port 2 (pod client), network 0"},
				{"parse", "TCP from 10.244.1.2:4000 to 10.96.0.10:80 SYN, 47 bytes"},
				{"flow", "none registered"},
				{"source", "the source address belongs to this port"},
				{"frontend", "10.96.0.10:80 TCP in network 0; usable backends for a client inside the cluster: 1"},
				{"choose", "backend 2, 172.30.0.11:8080, at random, one of 1"},
				{"flow", "both directions would be registered"},
				{"rewrite", "from 10.244.1.2:4000 to 172.30.0.11:8080"},
				{"forward", "to the node's own stack, as if it had come in on port 2 (pod client)"},
				{"verdict", "forward, reason new-flow: First packet of a flow; a backend was chosen"},
			},
		},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			w := newWorld(t, 4, packet.ProtocolTCP)
			c.given(w)
			f := w.frame(1, &c.step)
			trace := &Trace{}
			w.pipeline.Process(w.snapshot, append(make([]byte, 0, 2048), f.Bytes()...), w.punt(&c.step), int64(w.clock), trace)
			if diff := cmp.Diff(c.steps, trace.Steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTraceChangesNothing: the same packets give the same verdicts with and without one.
func TestTraceChangesNothing(t *testing.T) {
	all := steps(connected, answers, finishes, ends, opens,
		step{sends: "client:4000 > vip:81"}, step{sends: "outside:1 > vip:80", at: "in client"})
	run := func(trace func() *Trace) (out []Result) {
		w := newWorld(t, 6, packet.ProtocolTCP)
		w.serve("vip", "web:8080", "web:8080")
		for i := range all {
			f := w.frame(i, &all[i])
			b := append(make([]byte, 0, 2048), f.Bytes()...)
			out = append(out, w.pipeline.Process(w.snapshot, b, w.punt(&all[i]), int64(w.clock), trace()))
		}
		return out
	}
	with, without := run(func() *Trace { return &Trace{} }), run(func() *Trace { return nil })
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("with a trace (-without +with):\n%s", diff)
	}
}
